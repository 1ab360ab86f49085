// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The fields in which a proxy tells a server of the caller: exactly one line each, whatever the caller wrote (DESIGN of forwarding).
enum CallerReport {
    /// Returns the rule that a request breaks, or `nil`.
    static func fault(of request: ServerRequest, for order: Order) -> String? {
        func lines(_ name: String) -> [String] {
            request.fields.filter { $0.name.lowercased().replacing("_", with: "-") == name }.map(\.value)
        }
        let wanted = [
            ("x-forwarded-for", order.forwardedFor.map { "\($0), unknown" } ?? "unknown"),
            ("x-forwarded-proto", "http"), ("x-forwarded-host", "\(order.server.name).localhost:8080"),
        ]
        for (name, value) in wanted where lines(name) != [value] { return "\(name) is \(lines(name))" }
        let names = request.trailers.map { $0.name.lowercased().replacing("_", with: "-") }
        return names.contains("x-forwarded-for") ? "X-Forwarded-For is among the trailers" : nil
    }
}
