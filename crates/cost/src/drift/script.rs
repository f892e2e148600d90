//! In which script a text is written, which says roughly in which language, and nothing of what it says.

/// A family of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextScript {
    Latin,
    Cyrillic,
    Greek,
    Arabic,
    Hebrew,
    Devanagari,
    Thai,
    Han,
    Kana,
    Hangul,
    Other,
}

impl TextScript {
    pub const ALL: [Self; 11] = [
        Self::Latin,
        Self::Cyrillic,
        Self::Greek,
        Self::Arabic,
        Self::Hebrew,
        Self::Devanagari,
        Self::Thai,
        Self::Han,
        Self::Kana,
        Self::Hangul,
        Self::Other,
    ];

    /// The script of most letters in the first characters of a text; other for one without letters.
    ///
    /// Any kana make a text Japanese, which has more Han than kana.
    pub fn of(text: &str) -> Self {
        let mut counts = [0u32; Self::ALL.len()];
        text.chars()
            .take(READ)
            .filter(|letter| letter.is_alphabetic())
            .for_each(|letter| counts[Self::of_letter(letter) as usize] += 1);
        if counts[Self::Kana as usize] > 0 && counts[Self::Han as usize] > 0 {
            counts[Self::Kana as usize] += counts[Self::Han as usize];
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        // Of equal ones the first.
        Self::ALL
            .into_iter()
            .find(|script| most > 0 && counts[*script as usize] == most)
            .unwrap_or(Self::Other)
    }

    const fn of_letter(letter: char) -> Self {
        match letter as u32 {
            0x41..=0x24f | 0x1e00..=0x1eff | 0xff21..=0xff5a => Self::Latin,
            0x370..=0x3ff | 0x1f00..=0x1fff => Self::Greek,
            0x400..=0x52f => Self::Cyrillic,
            0x590..=0x5ff => Self::Hebrew,
            0x600..=0x6ff | 0x750..=0x77f | 0x8a0..=0x8ff | 0xfb50..=0xfdff | 0xfe70..=0xfeff => {
                Self::Arabic
            }
            0x900..=0x97f => Self::Devanagari,
            0xe00..=0xe7f => Self::Thai,
            0x3040..=0x30ff | 0x31f0..=0x31ff | 0xff66..=0xff9f => Self::Kana,
            0x1100..=0x11ff | 0x3130..=0x318f | 0xac00..=0xd7af => Self::Hangul,
            0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x2ffff => Self::Han,
            _ => Self::Other,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Latin => "latin",
            Self::Cyrillic => "cyrillic",
            Self::Greek => "greek",
            Self::Arabic => "arabic",
            Self::Hebrew => "hebrew",
            Self::Devanagari => "devanagari",
            Self::Thai => "thai",
            Self::Han => "han",
            Self::Kana => "kana",
            Self::Hangul => "hangul",
            Self::Other => "other",
        }
    }
}

/// Characters of a text that are looked at: a prompt may have millions.
const READ: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_known_by_their_letters() {
        let table = [
            ("Ça va, Zoë? 42 times.", TextScript::Latin),
            ("Привет, world", TextScript::Cyrillic),
            ("Καλημέρα", TextScript::Greek),
            ("مرحبا", TextScript::Arabic),
            ("שלום", TextScript::Hebrew),
            ("नमस्ते", TextScript::Devanagari),
            ("สวัสดี", TextScript::Thai),
            ("你好世界", TextScript::Han),
            ("東京都は日本の首都です", TextScript::Kana),
            ("안녕하세요", TextScript::Hangul),
            ("12 + 30 = ?", TextScript::Other),
            ("", TextScript::Other),
        ];
        for (text, script) in table {
            assert_eq!(TextScript::of(text), script, "{text}");
        }
        assert_eq!(TextScript::of(&format!("{}{}", "1".repeat(READ), "a")), TextScript::Other);
    }
}
