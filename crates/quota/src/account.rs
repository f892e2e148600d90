//! A gateway's slice of what a caller may use.

use crate::amount::Amount;

/// The counts of one lease, all of them since the gateway's journal began: a message that is lost, doubled or late says
/// nothing wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseCounts {
    /// Granted by banks.
    pub granted: Amount,
    /// Given back unspent.
    pub returned: Amount,
    pub spent: Amount,
    /// Paid ahead by requests that run; a part of what is granted and not yet of what is spent.
    pub reserved: Amount,
}

impl LeaseCounts {
    /// What it may still give to requests.
    pub fn idle(&self) -> Amount {
        self.granted.less(self.returned).less(self.spent).less(self.reserved)
    }

    /// What a bank must count on: what is there to be spent, or what was, if that is more.
    pub fn committed(&self) -> Amount {
        self.granted.less(self.returned).max(self.spent)
    }

    /// What is there to be spent.
    pub fn unspent(&self) -> Amount {
        self.granted.less(self.returned).less(self.spent)
    }

    /// Takes in what was told later, whichever came first.
    pub(crate) fn merge(&mut self, other: &Self) {
        // More was spent or returned by whoever spoke later; between two that say the same, what is reserved is a hint.
        let newer = (other.spent, other.returned) >= (self.spent, self.returned);
        self.reserved = if newer { other.reserved } else { self.reserved };
        self.granted = self.granted.max(other.granted);
        self.returned = self.returned.max(other.returned);
        self.spent = self.spent.max(other.spent);
    }
}

/// One lease at its gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseAccount {
    counts: LeaseCounts,
}

impl LeaseAccount {
    /// One that goes on from what a journal says. Requests that ran when it was written run no more; how much of what they
    /// had paid ahead was sent nobody knows, so all of it was.
    pub fn of_journal(counts: LeaseCounts) -> Self {
        let spent = counts.spent + counts.reserved;
        Self { counts: LeaseCounts { spent, reserved: Amount::ZERO, ..counts } }
    }

    pub const fn counts(&self) -> LeaseCounts {
        self.counts
    }

    /// Pays ahead. If there is not enough: what is lacking.
    pub fn reserve(&mut self, amount: Amount) -> Result<(), Amount> {
        let lacking = amount.less(self.counts.idle());
        if !lacking.is_zero() {
            return Err(lacking);
        }
        self.counts.reserved += amount;
        Ok(())
    }

    /// What was paid ahead is spent, or a part of it; the rest is there again. More may be spent than was paid, by what an
    /// engine wrote until it heard that it is over.
    pub fn settle(&mut self, reserved: Amount, spent: Amount) {
        self.counts.reserved = self.counts.reserved.less(reserved);
        self.counts.spent += spent;
    }

    /// A bank has granted so much in all.
    pub fn grant(&mut self, granted: Amount) {
        self.counts.granted = self.counts.granted.max(granted);
    }

    /// Gives back what nobody has paid ahead.
    pub fn give_back(&mut self) -> Amount {
        let idle = self.counts.idle();
        self.counts.returned += idle;
        idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn of(units: u128) -> Amount {
        Amount::new(units)
    }

    #[test]
    fn what_is_paid_ahead_is_spent_or_there_again() {
        let mut account = LeaseAccount::default();
        assert_eq!(account.reserve(of(10)), Err(of(10)));
        account.grant(of(100));
        account.grant(of(60));
        assert_eq!(account.reserve(of(70)), Ok(()));
        assert_eq!(account.reserve(of(40)), Err(of(10)));
        account.settle(of(70), of(20));
        assert_eq!(account.counts().idle(), of(80));
        assert_eq!(account.give_back(), of(80));
        assert_eq!(account.counts().committed(), of(20));
    }

    #[test]
    fn messages_in_any_order_come_to_the_same() {
        let early = LeaseCounts {
            granted: of(50),
            spent: of(10),
            reserved: of(5),
            ..LeaseCounts::default()
        };
        let late = LeaseCounts { granted: of(50), spent: of(30), returned: of(9), reserved: of(1) };
        let mut one = early;
        one.merge(&late);
        let mut other = late;
        other.merge(&early);
        assert_eq!((one, one), (other, late));
    }

    #[test]
    fn what_requests_had_paid_when_the_process_died_is_spent() {
        let mut account = LeaseAccount::default();
        account.grant(of(9));
        account.reserve(of(4)).unwrap();
        let again = LeaseAccount::of_journal(account.counts());
        assert_eq!((again.counts().idle(), again.counts().spent), (of(5), of(4)));
    }
}
