// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Settings

extension Settings {
    /// The fields that each credential has to have for the challenges that use it, by its name: for whoever has to add them.
    var neededFields: [String: [String]] {
        var fields: [String: [String]] = [:]
        for challenge in challenges {
            for name in challenge.credentialNames {
                for field in challenge.kind.neededFields where fields[name]?.contains(field) != true {
                    fields[name, default: []].append(field)
                }
            }
        }
        return fields
    }
}

extension ChallengeKind {
    fileprivate var neededFields: [String] {
        switch self {
        case .gateway(let settings):
            let used = Self.fields(settings.login.flatMap { $0.parameters.map(\.value) } + settings.inject.map(\.value))
            return used.isEmpty ? ["username", "password"] : used
        case .inject(let templates): return Self.fields(templates.map(\.value))
        case .own: return []
        case .scheme(let settings): return settings.token.map(Self.fields(of:)) ?? ["username", "password"]
        case .securityCheck(let settings): return Self.sorted(settings.answer.fieldNames)
        }
    }

    private static func fields(of token: TokenSettings) -> [String] {
        switch token.grant {
        case .clientCredentials, .mobileFirst:
            ["client-id", token.clientAuthentication == .privateKeyJWT ? "private-key" : "client-secret"]
        case .password, .registry: ["username", "password"]
        case .refreshToken: ["refresh-token"]
        case .static: ["token"]
        }
    }

    private static func fields(_ templates: [TextTemplate]) -> [String] {
        sorted(templates.reduce(into: Set<String>()) { $0.formUnion($1.fieldNames) })
    }

    /// As somebody writes them down: the name before the password. A one-time password comes from its seed.
    private static func sorted(_ names: Set<String>) -> [String] {
        names.map { $0 == "totp" ? "totp-seed" : $0 }.sorted { left, right in
            (left == "username" ? 0 : 1, left) < (right == "username" ? 0 : 1, right)
        }
    }
}
