// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Synchronization

/// A container registry's token service: where it is, and the registry's name there.
public final class RegistryService: Sendable {
    /// The token service.
    public let url: WebURL
    private let api: WebURL
    private let pinnedName: String?
    private let learnedName = Mutex<String?>(nil)

    /// The service at `url` of the registry at `registry`. With `name`, tokens are asked for no other registry; without,
    /// for the one that the registry says it is.
    public init(url: WebURL, registry: WebURL, name: String? = nil) {
        self.url = url
        api = registry.appending(path: "v2/")
        pinnedName = name
    }

    /// The registry's name there, as far as it is known.
    var name: String? { pinnedName ?? learnedName.withLock { $0 } }

    /// The request that any registry answers with its challenge (distribution's *API version check*); `nil` where nothing
    /// needs to be learned: a login ahead of any challenge that is not the first one.
    var question: SideRequest? { name == nil ? SideRequest(method: .get, url: api) : nil }

    /// Takes up what a challenge says, or says why not: whoever controls a registry must not choose who gets the password.
    func learn(_ challenge: RegistryChallenge) -> String? {
        guard WebURL(challenge.realm) == url else {
            return
                "The registry names another token service than `token.url`. Nothing was sent there; check `token.url`."
        }
        if let pinnedName, challenge.service != pinnedName {
            return "The registry calls itself by another name than `token.audience`. No token was asked for."
        }
        if let name = challenge.service { learnedName.withLock { $0 = name } }
        return nil
    }
}
