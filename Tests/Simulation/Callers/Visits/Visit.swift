// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One request of a guest, and what its answer must be.
struct Visit {
    let name: String
    let listener: ListenerKind
    let request: String
    /// Returns what is wrong with the answer; `nil` if nothing is.
    let fault: (CallerAnswer) -> String?

    /// Creates a request that is answered with one of these statuses.
    init(
        _ name: String, at listener: ListenerKind, _ request: String, _ statuses: Set<Int>,
        fault: @escaping (CallerAnswer) -> String? = { _ in nil }
    ) {
        self.name = name
        self.listener = listener
        self.request = request
        self.fault = { answer in
            statuses.contains(answer.status)
                ? fault(answer)
                : "\(answer.status) \(String(decoding: answer.body, as: UTF8.self).prefix(200))"
        }
    }

    /// Creates a request that is refused with that code, and its connection ended.
    static func refused(
        _ name: String, at listener: ListenerKind, _ request: String, _ statuses: Set<Int>, codes: Set<String>
    ) -> Visit {
        Visit(name, at: listener, request, statuses) { answer in
            guard codes.contains(answer.code ?? answer.codeOfHead ?? "") else {
                return "the code is \(answer.code ?? "lost")"
            }
            // Who is refused does not keep a connection that others may need.
            return answer.value("connection")?.lowercased() == "close" ? nil : "the connection stays open"
        }
    }
}
