// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The scopes of container registries (distribution's *token scope*): `repository:NAME:pull,push`.
public enum RegistryScope {
    /// `words` in one form: the actions of a resource sorted, and all of one resource in one word. Registries write the
    /// actions in any order, and each order would be another session.
    public static func canonical(_ words: some Sequence<String>) -> [String] {
        var actions: [String: Set<Substring>] = [:]
        for word in words {
            let colon = word.lastIndex(of: ":") ?? word.endIndex
            let named = word[colon...].dropFirst().split(separator: ",")
            // Without actions it is no resource, but some word.
            actions[named.isEmpty ? word : String(word[..<colon]), default: []].formUnion(named)
        }
        return actions.map { join($0, $1) }.sorted()
    }

    /// What a registry asks for at a path of its API (distribution's `/v2/` endpoints), so that one token serves all
    /// blobs and manifests of a repository; `nil` where the path tells nothing.
    public static func needed(method: String, path: String) -> Scope? {
        guard path.hasPrefix("/v2/") else { return nil }
        let rest = path.dropFirst(4)
        if rest.isEmpty { return .empty }
        guard let name = repository(rest) else { return nil }
        switch method {
        case "GET", "HEAD": return Scope(["repository:\(name):pull"])
        case "PATCH", "POST", "PUT": return Scope(["repository:\(name):pull,push"])
        case "DELETE": return Scope(["repository:\(name):delete"])
        default: return nil
        }
    }

    private static func join(_ resource: String, _ actions: Set<Substring>) -> String {
        actions.isEmpty ? resource : "\(resource):\(actions.sorted().joined(separator: ","))"
    }

    /// The name before the last word that an endpoint has; a name may hold such words itself.
    private static func repository(_ path: Substring) -> Substring? {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false)
        guard let end = segments.lastIndex(where: { ["blobs", "manifests", "referrers", "tags"].contains($0) }),
            end > 0,
            end + 1 < segments.count
        else { return nil }
        let name = segments[..<end]
        let isName = name.allSatisfy { segment in
            !segment.isEmpty
                && segment.utf8.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                        UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                        true
                    default:
                        false
                    }
                }
        }
        guard isName, let first = name.first, let last = name.last else { return nil }
        return path[first.startIndex..<last.endIndex]
    }
}
