// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Which requests share a challenge of Digest (`domain`, RFC 7616 §3.3).
struct DigestSpace: Sendable {
    /// The beginnings of request targets; empty where all of the origin shares it.
    private let beginnings: [String]

    /// The space that `domain` names, challenged at `url`. What lies at other origins is left out: an answer is never
    /// sent there. A list that does not hold the very address that was challenged is not to be relied on (a proxy in
    /// between may have changed paths), and all of the origin is meant.
    init(domain: [String], challengedAt url: WebURL) {
        let addresses = domain.compactMap { url.resolving($0) }.filter { $0.origin == url.origin }
        let beginnings = addresses.map(\.target)
        let holds = beginnings.contains { url.target.utf8.starts(with: $0.utf8) }
        self.beginnings = holds ? beginnings : []
    }

    /// Whether a request for `target` is to carry an answer before it is challenged.
    func contains(_ target: String) -> Bool {
        beginnings.isEmpty || beginnings.contains { target.utf8.starts(with: $0.utf8) }
    }
}
