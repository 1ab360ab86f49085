// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import HTTPTypes
internal import HTTPWire

// The fields that sessions make for each request, and what the answer proves in return.
extension Exchange {
    /// True if the signers of `sessions` know of the body what they need. If not, it is read first, after which `send` is done
    /// again.
    func knowsBody(for sessions: SessionFields, of client: UpstreamClient) -> Bool {
        guard sessions.hasSigners, !request.keepsCredentials, request.hasBody else { return true }
        let digests = sessions.bodyDigests(for: target.text)
        let isKnown = digests.allSatisfy { digest in
            reading.digests?.contains { $0.algorithm == digest.algorithm } == true
        }
        // A body that is known to be too long fails at once, while all of it is still the caller's.
        guard !isKnown, !isTooLong else { return true }
        reading.begin(digests, of: &body)
        timer.arm(at: runtime.loop.now)
        return false
    }

    /// Adds the signed fields of `sessions` to the request, all others of which are written. Returns why the exchange ends, if there
    /// can be none.
    func sign(by sessions: SessionFields, of client: UpstreamClient, into fields: FieldSink) -> ExchangeError? {
        if !checks.isEmpty { checks = [] }
        guard sessions.hasSigners, !request.keepsCredentials else { return nil }
        let digests = reading.digests.map { SigningRequest.Body.digests($0) } ?? .unread
        let signing = SigningRequest(
            method: request.methodName, origin: client.plan.base.origin, target: target.text,
            body: request.hasBody ? digests : .none, fields: fields)
        do throws(LoginFailure) {
            checks = try sessions.sign(signing) { fields.append(name: $0.rawName.utf8.span, value: $1) }
        } catch {
            return ExchangeError(error)
        }
        return nil
    }

    /// Goes on with the body that is to be known before it is sent. By the timer only: whoever brought more of it is not to
    /// find the exchange over.
    func readBody() {
        guard let client, let attentive else { return }
        switch reading.read(&body) {
        case .done:
            perform(.send)
        case .goOn:
            timer.arm(at: runtime.loop.now)
        case .hungry:
            // The caller has a time limit of its own.
            timer.disarm()
            caller?.exchangeWantsBody()
        case .lost:
            do throws(LoginFailure) {
                let signing = SigningRequest(
                    method: request.methodName, origin: client.plan.base.origin, target: target.text,
                    body: .unread)
                _ = try attentive.sign(signing) { _, _ in }
                perform(machine.failed(.bodyNotReplayable))
            } catch {
                perform(machine.failed(ExchangeError(error)))
            }
        }
    }

    /// More of the body is here.
    func bodyCame() {
        transfer?.bodyAvailable()
        if reading.isReading { timer.arm(at: runtime.loop.now) }
    }

    /// True if the answer proves what it has to; where not, the exchange is over.
    func passesChecks(_ transfer: Transfer, of client: UpstreamClient) -> Bool {
        guard !checks.isEmpty else { return true }
        let head = transfer.head.withSpan { ScannedHead(transfer.answer, in: $0) }
        for check in checks {
            guard let fault = check.fault(status: head.status, fields: head.fields) else { continue }
            perform(machine.failed(.unproven(by: fault, of: client.plan)))
            return false
        }
        return true
    }
}

extension ExchangeError {
    /// What the server sent to prove who it is proves something else (RFC 4559 §5).
    static func unproven(by fault: String, of plan: UpstreamPlan) -> ExchangeError {
        ExchangeError(
            .upstreamProtocol,
            detail: """
                The upstream \(plan.name) answered, but could not prove that it is the server that was asked, so its answer \
                was not passed on. The request may have been carried out. Somebody may stand in between, or the server has \
                another key than the KDC has for it.
                """, cause: fault)
    }
}
