// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A dialog whose answer comes later, from elsewhere: from the button that somebody taps.
///
/// IBM's handlers return from `handleChallenge`, and the dialog calls `submitChallengeAnswer` later. Here the handler waits: a
/// continuation joins the two. `PinCodeHandler { await dialog.ask($0) }` is the handler.
@MainActor
public final class PinDialog {
    private var waiting: CheckedContinuation<String?, Never>?
    private let show: (_ prompt: String) -> Void

    /// Creates a dialog that shows its question by `show`.
    public init(show: @escaping (_ prompt: String) -> Void) { self.show = show }

    /// Shows the question, and waits for one of the buttons. `nil` if the person or the program gives up.
    public func ask(_ prompt: String) async -> String? {
        cancelTapped()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiting = continuation
                show(prompt)
            }
        } onCancel: {
            // The client ends the wait at its limit, or the request was cancelled.
            Task { @MainActor in self.cancelTapped() }
        }
    }

    /// The action of the button OK.
    public func okTapped(_ pin: String) { close(with: pin) }

    /// The action of the button Cancel.
    public func cancelTapped() { close(with: nil) }

    private func close(with answer: String?) {
        // Taken first: a continuation is resumed once, however often somebody taps.
        let continuation = waiting
        waiting = nil
        continuation?.resume(returning: answer)
    }
}
