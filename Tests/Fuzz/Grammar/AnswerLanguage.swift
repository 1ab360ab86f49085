// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An upstream's answers on one connection, whole or cut, and what nobody asked for behind them. What they mean the target finds out.
struct AnswerLanguage: Language {
    static let name = "answers"
    static let period: UInt64 = 1

    var sentence = Sentence()
    private var text = ResponseText()
    private var chunks = ChunkedText()

    mutating func write() {
        for _ in 0..<(sentence.choices.once(in: 3) ? sentence.choices.below(4) : 0) {
            text.write(&sentence, isInterim: true, mayBreak: false)
        }
        text.write(&sentence, isInterim: false)
        guard !text.isBroken else { return }
        if text.isChunked {
            chunks.write(&sentence)
        } else {
            sentence.putAnything(Int(min(text.length ?? UInt64(sentence.choices.below(30)), 60)))
        }
        switch sentence.choices.below(8) {
        case 0: sentence.put("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        case 1: sentence.cut(to: sentence.choices.below(min(sentence.count, 60_000) + 1))
        default: break
        }
    }

    func check() {}
}
