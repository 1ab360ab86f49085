// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Answers the challenge by which an administrator's notice reaches an application's users (`wl_remoteDisableRealm` with
/// `messageType: NOTIFY`): the notice is told as a step, and acknowledged by its number.
///
/// Every login has it, unless a handler for that check is given.
struct ApplicationNoticeHandler: SecurityCheckChallengeHandler {
    static let check = "wl_remoteDisableRealm"

    /// The upstream's name.
    let challengeName: String

    var securityCheck: String { Self.check }

    func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        let message = challenge.value["message"]?.stringValue.map(ServerText.sentence) ?? ""
        // Two in a row would acknowledge for ever.
        guard challenge.value["messageType"] == "NOTIFY", let number = challenge.value["messageId"],
            challenge.previousAnswer == .notGiven
        else {
            return .cancel(
                reason:
                    "The administrator of the server demands something of this application that cannot be answered: "
                    + message)
        }
        challenge.conversation.report(
            ConversationStep(challenge: challengeName, text: "notice of the server: \(message)"))
        return .submitChallengeAnswer(["messageId": number])
    }
}
