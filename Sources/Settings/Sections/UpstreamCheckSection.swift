// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import SettingsReading

extension UpstreamCheckSettings {
    /// `upstreams.*.check`.
    static func read(_ value: Value) -> UpstreamCheckSettings? {
        guard let fields = value.fields() else { return nil }
        let path = fields.required("path").flatMap { checkPath($0) }
        let statuses = fields["status"]?.listOrOne().compactMap { $0.integer(in: 200...599) } ?? []
        let everyValue = fields["every"]
        let every = everyValue?.duration()
        fields.finish()
        if let every, every < .seconds(1) { everyValue?.report("is less than a second") }
        return path.map {
            UpstreamCheckSettings(
                path: $0, statuses: statuses.isEmpty ? [200] : Set(statuses), period: every ?? .seconds(30))
        }
    }

    /// A path, and perhaps a query, as they stand in a request (RFC 9112 §3.2.1).
    private static func checkPath(_ value: Value) -> String? {
        guard let text = value.word() else { return nil }
        let isVisible = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
        guard text.utf8.first == UInt8(ascii: "/"), isVisible, text.utf8.count <= 2048 else {
            value.report(
                "is no path: it begins with / and is made of visible ASCII signs, without #; others are written %C3%A4")
            return nil
        }
        return text
    }
}
