// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// A container registry's challenge for a token (distribution's *token authentication*): `Bearer
/// realm="https://auth.example.com/token",service="registry.example.com",scope="repository:a/b:pull"`.
public struct RegistryChallenge: Sendable, Equatable {
    /// The token service's address as written by the registry.
    public let realm: String
    /// The registry's name at the token service.
    public let service: String?
    /// The scope that the request needs, in canonical form.
    public let scope: Scope
    /// The error of the token that was sent (RFC 6750 §3.1), if any.
    public let error: String?

    /// Finds the challenge of a 401; `nil` if there is none.
    public init?(status: Int, fields: HTTPFields) {
        guard status == 401,
            let challenge = ChallengeList(in: fields).challenges.first(where: {
                $0.isScheme("Bearer") && $0["realm"] != nil
            }),
            let realm = challenge["realm"]
        else { return nil }
        self.realm = realm
        service = challenge["service"]
        scope = Scope(RegistryScope.canonical(Scope(text: challenge["scope"] ?? "").words))
        error = challenge["error"]
    }
}

/// Detector of challenges of container registries, which name the required scope.
public struct RegistryDetector: ChallengeDetector {
    /// The only realm to answer, which is the token service's address; `nil` for any.
    public let realm: String?

    /// Creates a detector.
    public init(realm: String? = nil) { self.realm = realm }

    /// The name that `explain` shows.
    public var kind: String { "bearer of a registry" }

    /// Detects a 401 with `Bearer` and a realm, whatever its `error`. Registries also send 401 if the token is valid but
    /// its scope too small, with `insufficient_scope` or without any error.
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard let challenge = RegistryChallenge(status: response.status, fields: response.fields),
            realm == nil || challenge.realm == realm
        else { return .pass }
        let isScope = !hasSession || challenge.error == "insufficient_scope"
        return .challenged(scope: isScope ? challenge.scope.words : [])
    }
}

/// The scopes of container registries (distribution's *token scope*): `repository:NAME:pull,push`.
public enum RegistryScope {
    /// Returns `words` in canonical form: one word for each resource, with its actions sorted. Registries write actions
    /// in any order, and each order would be another session.
    public static func canonical(_ words: some Sequence<String>) -> [String] {
        var actions: [String: Set<Substring>] = [:]
        for word in words {
            let colon = word.lastIndex(of: ":") ?? word.endIndex
            let named = word[colon...].dropFirst().split(separator: ",")
            // A word without actions names no resource.
            actions[named.isEmpty ? word : String(word[..<colon]), default: []].formUnion(named)
        }
        return actions.map { join($0, $1) }.sorted()
    }

    /// Returns the scope that a path of the API needs (distribution's `/v2/` endpoints). One token then serves all
    /// blobs and manifests of a repository. `nil` if the path does not determine a scope.
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

    /// Returns the name before the last endpoint word; a name may contain such words itself.
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
