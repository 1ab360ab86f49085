// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// A question as systemd's password agents read it, and what they answer: the files and datagrams of the Password Agent
/// Specification (systemd.io/PASSWORD_AGENTS).
struct AskFile: Equatable {
    /// What an agent sends back.
    enum Reply: Equatable {
        /// What was typed.
        case answer(Secret)
        /// The person does not want to answer, or typed nothing.
        case withdrawn
    }

    /// The longest datagram that can be an answer, in bytes.
    static let replyLimit = 4096

    /// What the person reads.
    var message: String
    /// What an agent may look an answer up by.
    var id: String
    /// Where the answer goes.
    var socket: String
    /// Who asks; agents ignore the question once that process is gone.
    var process: Int32
    /// When the question is over, in microseconds of CLOCK_MONOTONIC.
    var notAfter: UInt64

    /// The text of the file. Each value is one line: what would end it is left out.
    var text: String {
        """
        [Ask]
        PID=\(process)
        Socket=\(Self.line(socket))
        AcceptCached=0
        Echo=0
        Silent=0
        NotAfter=\(notAfter)
        Message=\(Self.line(message))
        Icon=dialog-password
        Id=\(Self.line(id))

        """
    }

    /// What a datagram says: `+` and answers with a zero byte after each, of which the first counts, or `-`. `nil` where it
    /// is neither.
    static func reply(in datagram: [UInt8]) -> Reply? {
        switch datagram.first {
        case UInt8(ascii: "+"):
            let answer = datagram.dropFirst().prefix { $0 != 0 }
            return answer.isEmpty ? .withdrawn : .answer(Secret(answer))
        case UInt8(ascii: "-"): return .withdrawn
        default: return nil
        }
    }

    private static func line(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }))
    }
}
