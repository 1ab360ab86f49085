// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes

/// Confirmation of a refused value at the addresses that accepted it (CONTRIBUTING, rule 3).
///
/// Each is asked without the value first: one that has become public proves nothing. The first that asks gets the value, and
/// decides. The refusing address is not among them, since its owner must not be able to latch a value for all.
struct AcceptedAddresses {
    /// What an address shows of the value.
    enum Finding {
        case accepted
        /// The address asks for nothing without the value, which was not sent.
        case open
        case refused
        /// No usable answer without the value, which was not sent.
        case silent
        /// No usable answer to the value.
        case unclear
    }

    let use: CredentialUse
    /// The addresses to ask, in that order.
    let addresses: [WebURL]
    /// True if the value was accepted where it had been asked for.
    private let wasAsked: Bool

    /// Creates the list: `proof`, then those of the mark, the newest first.
    ///
    /// `refusal`: the response that refused the value, if one is known.
    init(
        of use: CredentialUse, at origin: Origin, proof: WebURL?, refusal: (path: String, isRead: Bool)?,
        in conversation: Conversation
    ) {
        let mark = use.acceptance(in: conversation)
        var addresses = proof.map { [$0] } ?? []
        addresses += (mark?.addresses ?? []).map { WebURL(origin: origin, path: $0.path) }.filter { $0 != proof }
        // A refused write says nothing about reading at the same path.
        self.addresses = addresses.filter { $0.path != refusal?.path || refusal?.isRead == false }
        self.use = use
        wasAsked = mark?.wasAsked == true
    }

    /// Asks the addresses until one decides.
    ///
    /// If none does, a value that was accepted once is sent again after a minute, and the next refusal counts.
    func confirm(
        in conversation: Conversation, _ ask: (WebURL) async -> Finding
    ) async -> SessionConfirmation {
        var isInTrouble = false
        for address in addresses {
            switch await ask(address) {
            case .accepted:
                await use.accept(at: address.path, in: conversation)
                return .stillGood
            case .open: continue
            case .refused: return .over
            case .silent: isInTrouble = true
            // The value was sent twice by now, which is enough.
            case .unclear: return .unknown
            }
        }
        if isInTrouble { return .unknown }
        guard wasAsked else { return .over }
        let retryAt = await use.doubt(in: conversation)
        conversation.report(
            ConversationStep(
                challenge: use.key.challenge,
                text: "the credential was accepted before, and no other address shows if it still is: it is sent again "
                    + "in a minute"))
        return .postponed(until: retryAt)
    }
}

extension ExaminedResponse {
    /// The path of a refused request, and whether it was one that reads.
    var refusal: (path: String, isRead: Bool) { (url.path, method.isRetrieval) }
}
