// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension LocalReply {
    /// The frame does not say which request it is about.
    init(_ fault: SPOPNotification.Fault, listener: String) {
        let said =
            switch fault {
            case .messageUnknown: "Over SPOP an authority takes one message, and its name is authorize."
            case .argumentsIncomplete:
                "The message authorize takes method=method target=pathq fields=req.hdrs, each once and not empty."
            case .argumentInvalid: "The arguments of the message authorize make no head of a request."
            }
        self.init(
            .badRequest,
            detail: "\(said) The HAProxy that asks listener \(listener) has to be configured so; see the examples.")
    }

    /// The variables for HAProxy: the more important first, for a frame may have no room for all.
    fileprivate var variables: [(name: String, value: String)] {
        [
            ("code", code.rawValue), ("detail", visibleDetail), ("proxy_status", proxyStatus),
            ("document", plainDocument),
        ]
    }

    /// The document in ASCII and in one line: HAProxy would write anything else as `%0A`, say.
    private var plainDocument: String {
        String(decoding: document, as: UTF8.self).utf16.reduce(into: "") { text, unit in
            switch unit {
            case 0x20...0x7E: text.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            case 0x80...:
                let digits = String(unit, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: break
            }
        }
    }
}

extension SPOPWriter {
    /// Writes a reply as variables of the transaction, as far as a frame of `limit` bytes holds them.
    mutating func write(_ reply: LocalReply, within limit: Int) {
        variable("status", number: UInt64(reply.status))
        if let retryAfter = reply.retryAfter { variable("retry_after", number: UInt64(max(0, retryAfter))) }
        for (name, value) in reply.variables where fits(value.utf8.count, within: limit) {
            variable("", name.utf8.span, text: value.utf8.span)
        }
    }
}
