// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The input language of one reader: sentences whose meaning is known, because they are made and not found.
protocol Language: SendableMetatype {
    /// Its name on the command line.
    static var name: String { get }
    /// The fuzz target that also reads its sentences, whatever they mean.
    static var target: String { get }
    /// Number of sentences of which the target also reads one; the slow readers of a fast language cost most of its
    /// time.
    static var period: UInt64 { get }

    init()
    var sentence: Sentence { get set }

    /// Writes a sentence, and keeps its meaning.
    mutating func write()
    /// Reads the sentence, and throws if it is not understood as what it means: a valid one is taken with that meaning, any other
    /// one is refused; in pieces it is the same; what is written of it means the same to another reader.
    mutating func check() throws(Violation)
}

extension Language {
    static var target: String { name }
    static var period: UInt64 { 64 }
}

/// A language as it is spoken by the runner and by the tests.
struct Grammar: Sendable {
    let name: String
    /// The fuzz target that reads its sentences.
    let target: String
    /// See `Language.period`; of a slow language it is low.
    let period: UInt64
    /// Speaks the sentences of these seeds, and tells the seed of each before it does. `isThorough`: each of them is read by
    /// the target, too.
    let speak: @Sendable (Range<UInt64>, _ isThorough: Bool, _ tell: (UInt64) -> Void) throws(Misunderstanding) -> Void
    /// The sentence of a seed, as the target gets it.
    let sentence: @Sendable (_ seed: UInt64) -> [UInt8]

    init<Spoken: Language>(_: Spoken.Type) {
        let target = FuzzTarget.all.first { $0.name == Spoken.target }
        name = Spoken.name
        self.target = Spoken.target
        period = Spoken.period
        speak = { (seeds, isThorough, tell) throws(Misunderstanding) in
            var language = Spoken()
            for seed in seeds {
                tell(seed)
                do throws(Violation) {
                    language.sentence.begin(seed)
                    language.write()
                    let isBlurred = language.sentence.choices.once(in: 64)
                    if isBlurred { language.sentence.blur() } else { try language.check() }
                    if isBlurred || isThorough || seed % Spoken.period == 0 {
                        try target?.run(language.sentence.bytes.span)
                    }
                } catch {
                    throw Misunderstanding(seed: seed, sentence: language.sentence.bytes, rule: error.description)
                }
            }
        }
        sentence = { seed in
            var language = Spoken()
            language.sentence.begin(seed)
            language.write()
            if language.sentence.choices.once(in: 64) { language.sentence.blur() }
            return language.sentence.bytes
        }
    }
}

/// A sentence that was not read with its meaning.
struct Misunderstanding: Error {
    let seed: UInt64
    let sentence: [UInt8]
    let rule: String
}

extension Grammar {
    static let all: [Grammar] = [
        Grammar(RequestLanguage.self),
        Grammar(ChunkLanguage.self),
        Grammar(ResponseLanguage.self),
        Grammar(FrameLanguage.self),
        Grammar(ReplyLanguage.self),
        Grammar(TrailerLanguage.self),
        Grammar(CookieLanguage.self),
        Grammar(StructuredLanguage.self),
        Grammar(CertificateLanguage.self),
        Grammar(TargetLanguage.self),
        Grammar(PageLanguage.self),
        Grammar(SecretLanguage.self),
        Grammar(RecordingLanguage.self),
        Grammar(SettingsLanguage.self),
        Grammar(FormLanguage.self),
        Grammar(SessionLanguage.self),
        Grammar(NumberLanguage.self),
        Grammar(ExchangeLanguage.self),
        Grammar(HandshakeLanguage.self),
        Grammar(AnswerLanguage.self),
        Grammar(ConnectionLanguage.self),
        Grammar(LocationLanguage.self),
        Grammar(AddressLanguage.self),
        Grammar(Base64Language.self),
        Grammar(DateLanguage.self),
        Grammar(JSONLanguage.self),
        Grammar(ChallengeLanguage.self),
    ]
}
