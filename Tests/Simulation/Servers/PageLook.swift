// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Answers that look like login pages, and are none, or would be if they were another type: rule 12.
enum PageLook: CaseIterable {
    /// The beginning of a page that a detector sees, in bytes.
    private static let seen = 64 * 1024

    /// A page longer than what a detector sees, with the words of a login page behind that.
    case long
    /// A page that comes slowly.
    case slow
    /// The words of a login page in a text.
    case text
    /// The same in JSON.
    case json
    /// A part of a page (RFC 9110 §15.3.7).
    case part
    /// A compressed page.
    case compressed
    /// A refusal of the resource's own, as text.
    case refusal
    /// A redirect to a server that is no part of any login.
    case moved

    /// Returns the look of the answer to an order; `nil` for bytes that nobody takes for a page.
    static func look(of number: Int, at server: SimulatedServer) -> PageLook? {
        guard server.protection.needsBody || server.protection is SignOnProtection, number % 2 == 0 else { return nil }
        let all = allCases
        return all[number / 2 % all.count]
    }

    /// Gives `answer` that look.
    func dress(_ answer: inout ServerAnswer, to request: ServerRequest, at server: SimulatedServer) {
        let words = Array(String(decoding: server.protection.refusal().body, as: UTF8.self).utf8)
        let own = Array("<html><body>an answer ".utf8) + answer.body.prefix(40).map { 0x61 + $0 % 26 }
        let chance = server.simulation.chance.below(4)
        func set(_ status: Int, _ type: String, _ body: [UInt8], pause: SlowAnswer.Pause?) {
            answer.status = status
            answer.fields.removeAll { ["content-type", "location"].contains($0.name.lowercased()) }
            answer.fields.append(("Content-Type", type))
            answer.body = body
            if chance == 0, request.method != "HEAD", !request.isSide, !answer.isTruncated { answer.pause = pause }
        }
        let prompt = SlowAnswer.Pause(after: 100, mayBeHeld: false)
        switch self {
        case .long:
            let filler = [UInt8](repeating: 0x2E, count: Self.seen)
            set(200, "text/html", own + filler + words, pause: .init(after: Self.seen + 40, mayBeHeld: false))
        case .slow:
            let filler = [UInt8](repeating: 0x2E, count: 400)
            set(200, "Text/HTML ; charset=utf-8", own + filler, pause: .init(after: 100, mayBeHeld: true))
        case .text: set(200, "text/plain", own + words, pause: prompt)
        case .json: set(200, "application/vnd.api+json", own + words, pause: prompt)
        case .part:
            set(206, "text/html", own + words, pause: prompt)
            answer.fields.append(("Content-Range", "bytes 0-\(answer.body.count - 1)/100000"))
        case .compressed:
            guard request.value("accept-encoding")?.contains("gzip") == true else { return }
            set(200, "text/html", GzipText.encode(own), pause: nil)
            answer.fields.append(("Content-Encoding", "gzip"))
        case .refusal:
            // What a security check says is looked for in a 401, what a page says in a 403.
            let status = server.protection is CheckProtection ? 401 : 403
            // What a signature's judge says is looked for in any.
            let isHeld = server.protection is SignedProtection
            set(status, "text/plain", own + words, pause: isHeld ? .init(after: 100, mayBeHeld: true) : prompt)
        case .moved:
            set(302, "text/plain", own, pause: nil)
            answer.fields.append(("Location", "\(ApplicationForm.elsewhere)/files"))
        }
    }
}
