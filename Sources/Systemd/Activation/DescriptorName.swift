// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The name of an inherited or stored descriptor: `FileDescriptorName=` of a socket unit, `FDNAME=` of a notification.
///
/// At most 255 ASCII characters, none of them a control character or a colon (systemd.socket(5)).
package struct DescriptorName: RawRepresentable, Hashable, Sendable {
    /// The name as systemd writes it.
    package let rawValue: String

    /// The name, or nil where systemd would refuse it (and, for the descriptor store, use `stored` in its place).
    package init?(rawValue: String) {
        let bytes = rawValue.utf8
        guard (1...255).contains(bytes.count), bytes.allSatisfy({ (0x20..<0x7F).contains($0) && $0 != 0x3A }) else {
            return nil
        }
        self.rawValue = rawValue
    }
}
