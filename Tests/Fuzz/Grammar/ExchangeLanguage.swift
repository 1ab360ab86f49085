// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What befalls one exchange, as the choices of its peers: runs of the same event, two that alternate, and any. What may follow what
/// the target knows.
struct ExchangeLanguage: Language {
    static let name = "exchanges"
    static let period: UInt64 = 1

    var sentence = Sentence()

    mutating func write() {
        for _ in 0...sentence.choices.below(6) {
            let (one, other) = (UInt8(sentence.choices.below(256)), UInt8(sentence.choices.below(12)))
            let count = 1 + sentence.choices.below(16)
            switch sentence.choices.below(3) {
            case 0: for _ in 0..<count { sentence.put(one) }
            case 1: for index in 0..<count { sentence.put(index % 2 == 0 ? one : other) }
            default:
                for _ in 0..<count { sentence.put(UInt8(sentence.choices.below(sentence.choices.flip() ? 12 : 256))) }
            }
        }
    }

    func check() {}
}
