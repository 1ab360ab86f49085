// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Names one request of a caller in local replies, log lines and records: `4f3a9c21-0-17`, which is the process, the worker
/// and a number. Made into text only where somebody reads it.
package struct ExchangeID: Sendable, Hashable, CustomStringConvertible {
    /// Tells the processes of one log apart.
    private let process: UInt32
    private let ticket: ExchangeTicket

    /// The id of what `ticket` names in the process of that tag.
    package init(process: UInt32, ticket: ExchangeTicket) {
        self.process = process
        self.ticket = ticket
    }

    /// The text, of hexadecimal digits, digits and hyphens.
    package var description: String {
        let tag = String(process, radix: 16)
        return String(repeating: "0", count: max(0, 8 - tag.utf8.count)) + "\(tag)-\(ticket.worker)-\(ticket.exchange)"
    }
}
