// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

extension HTTPFields {
    /// Passes each field line to `body`, all `Cookie` fields as one line in the place of the first.
    ///
    /// A request has at most one `Cookie` line (RFC 6265 §5.4), but the setter `fields[.cookie]` splits its value into one field for
    /// each cookie, as HTTP/2 allows (RFC 9113 §8.2.3). Servers join such lines by commas and lose the session.
    func forEachLine<Failure>(
        _ body: (_ name: HTTPField.Name, _ value: String) throws(Failure) -> Void
    ) throws(Failure) {
        var hasCookie = false
        for field in self {
            guard field.name == .cookie else {
                try body(field.name, field.value)
                continue
            }
            guard !hasCookie else { continue }
            hasCookie = true
            // The getter joins the lines by "; ".
            try body(field.name, self[.cookie] ?? "")
        }
    }
}
