// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Secrets
internal import Settings
internal import System

struct KeysCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys", abstract: "Print the public keys that verify signatures, as a JWK set.",
        discussion: """
            For each challenge with `sign: { message }` or `client-auth: private-key-jwt`, prints the public key of its credential \
            (RFC 7517), one for each credential. `kid` is the identifier that signatures name: `key-id`, or else the thumbprint \
            (RFC 7638). Prints no private key and sends nothing. Exits with 0, with 64 if no challenge of that name signs with a key \
            pair, and with 69 if a key cannot be read.
            """)

    @OptionGroup var configuration: ConfigurationOptions

    @Argument(help: "The challenge. Default: all that sign with a key pair.")
    var challenge: String?

    @Flag(name: .long, help: "Print the set on one line.")
    var json = false

    func run() throws {
        let settings = try configuration.load()
        let publishers = settings.challenges.filter { ($0.kind as? any PublicKeyPublisher)?.signsByKeyPair == true }
        let chosen = publishers.filter { challenge == nil || challenge == $0.name }
        guard !chosen.isEmpty else {
            let names = publishers.map(\.name).joined(separator: ", ")
            let reason =
                names.isEmpty
                ? "no challenge signs with a key pair"
                : "the challenge \(challenge ?? "") does not sign with a key pair; these do: \(names)"
            throw Failure(reason, code: EX_USAGE)
        }
        let keys = try Self.keys(of: chosen, settings)
        if json {
            Process.print(JSONValue.object(["keys": .array(keys)]))
        } else {
            let lines = keys.map { "    \(String(decoding: $0.serialized(), as: UTF8.self))" }
            Process.print("{\n  \"keys\": [\n\(lines.joined(separator: ",\n"))\n  ]\n}")
        }
    }

    /// Returns the public keys, each once.
    private static func keys(of challenges: [ChallengeSettings], _ settings: Settings) throws -> [JSONValue] {
        let digests = CryptoDigests()
        let sources = CredentialComposition(
            settings.credentials, asker: CommandAsker.present, oneTimePasswords: NoOneTimePasswords(),
            state: try? StateDirectory.locate(environment: Process.environment, uid: getuid()),
            needed: settings.neededFields)
        var keys: [JSONValue] = []
        for challenge in challenges {
            for name in challenge.credentialNames {
                let found = Blocking.run { () -> Result<Credential?, CredentialError> in
                    do throws(CredentialError) {
                        return .success(try await sources.credential(named: name))
                    } catch {
                        return .failure(error)
                    }
                }
                let key = try publicKey(of: challenge, name, found, sources)?.json(by: digests)
                if let key, !keys.contains(key) { keys.append(key) }
            }
        }
        return keys
    }

    private static func publicKey(
        of challenge: ChallengeSettings, _ name: String, _ found: Result<Credential?, CredentialError>,
        _ sources: CredentialComposition
    ) throws -> PublicKey? {
        let place = "challenge \(challenge.name)"
        switch found {
        case .failure(let error): throw Failure("\(place): \(error.reason)", code: EX_UNAVAILABLE)
        case .success(nil):
            let advice = sources.advice(onMissing: name)
            throw Failure("\(place): no source knows the credential \"\(name)\". \(advice)", code: EX_UNAVAILABLE)
        case .success(let credential?):
            do throws(LoginFailure) {
                return try (challenge.kind as? any PublicKeyPublisher)?
                    .publicKey(of: credential, challenge: challenge.name, keys: CryptoMessageKeys())
            } catch {
                throw Failure("\(place): \(error.detail)", code: EX_UNAVAILABLE)
            }
        }
    }
}
