// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// The requests of one login at a gateway, with the cookies that it collects on its way.
struct GatewayVisit {
    /// A page, and whether it or a redirect on the way to it told that nobody is logged in.
    struct Page {
        var response: ExaminedResponse
        var isMarked: Bool
    }

    /// The redirects that are followed to a page.
    enum Redirects { case all, none, untilMarked }

    /// So many redirects are followed to a page.
    static let redirectLimit = 5

    /// Whom failures and steps belong to.
    let name: String
    let conversation: Conversation
    /// Tells by a response that nobody is logged in.
    let isMarked: (ExaminedResponse) -> Bool
    /// The time that a page is waited for.
    let patience: Duration
    private(set) var jar = CookieJar()
    /// What was taken from answers so far.
    private(set) var extracted: [String: Secret] = [:]
    /// When the session ends by what an answer says of it, in milliseconds since 1970.
    private(set) var endsAt: Int64?
    /// The session whose cookies and fields go along; `nil` if one is to be won.
    private let session: Session?

    init(
        name: String, conversation: Conversation, patience: Duration = .seconds(10), session: Session? = nil,
        isMarked: @escaping (ExaminedResponse) -> Bool
    ) {
        self.session = session
        self.patience = patience
        jar = session?.cookies?.snapshot ?? CookieJar()
        self.name = name
        self.conversation = conversation
        self.isMarked = isMarked
    }

    /// Fetches a page, by redirects within its origin.
    mutating func open(_ address: WebURL, _ step: String) async throws(LoginFailure) -> Page {
        let page = try await look(at: address, step)
        if let failure = trouble(in: page.response, step) { throw failure }
        return page
    }

    /// Fetches a page on behalf of a request that waits. `nil` if the server cannot be reached, which that request itself will be
    /// told. Throws if there was no answer in time.
    mutating func search(_ address: WebURL) async throws(LoginFailure) -> Page? {
        do throws(LoginFailure) {
            return try await look(at: address, "page")
        } catch {
            if error.code == .timedOut { throw error }
            return nil
        }
    }

    /// Fetches a page as `open` does, whatever the status.
    mutating func look(
        at address: WebURL, _ step: String, over redirects: Redirects = .all
    ) async throws(LoginFailure) -> Page {
        var address = address
        var isMarked = false
        for _ in 0...Self.redirectLimit {
            var request = SideRequest(
                method: .get, url: address, fields: [.accept: SideRequest.pageTypes], timeout: patience)
            request.isLook = true
            let response = try await send(request, step)
            isMarked = isMarked || self.isMarked(response)
            guard redirects == .all || redirects == .untilMarked && !isMarked,
                let next = Self.redirectWithinOrigin(in: response)
            else { return Page(response: response, isMarked: isMarked) }
            address = next
        }
        throw failure("The server answers with more than \(Self.redirectLimit) redirects, one after the other.")
    }

    /// Sends one request with the cookies that it gets, and keeps those of the answer.
    mutating func send(_ request: SideRequest, _ step: String) async throws(LoginFailure) -> ExaminedResponse {
        var request = request
        if let cookies = jar.header(for: request.url, now: conversation.now()) {
            request.fields[values: .cookie] = [cookies.revealText()]
        }
        for field in session?.fields ?? [] { request.fields[field.name] = field.value.revealText() }
        let answer: SideResponse
        do throws(SideRequestError) {
            answer = try await conversation.sideRequests.send(request)
        } catch {
            report("\(step): no answer, \(error.reason)")
            throw noAnswer(error, step)
        }
        report("\(step): \(answer.status)")
        if answer.status == 200, answer.body.isEmpty, let coding = answer.fields[.contentEncoding] {
            report("\(step): the answer cannot be read, its content coding is \(ServerText.name(coding))")
        }
        for value in answer.fields[values: .setCookie] {
            let isKept = jar.store(value, from: request.url, now: conversation.now())
            _ = session?.cookies?.take(value, from: request.url, now: conversation.now())
            if !isKept { report("\(step): a cookie that this address may not set was refused") }
        }
        return ExaminedResponse(
            status: answer.status, fields: answer.fields, body: answer.body, method: request.method, url: request.url)
    }

    /// Keeps a cookie of a response that came outside of the visit.
    mutating func keep(_ setCookie: String, from url: WebURL) {
        jar.store(setCookie, from: url, now: conversation.now())
    }

    /// Takes from the answer to a step, which was sent at `sentAt`, what the step wants of it: its life counts from then.
    mutating func extract(
        _ extraction: GatewayExtraction, from answer: ExaminedResponse, sentAt: Int64
    ) throws(LoginFailure) {
        guard !extraction.isEmpty else { return }
        guard (200...299).contains(answer.status) else { throw unusable("has status \(answer.status)", answer) }
        do throws(GatewayExtraction.Unusable) {
            let values = try extraction.values(in: answer.body ?? [])
            extracted.merge(values.fields) { $1 }
            if let life = values.life {
                let end = sentAt.addingReportingOverflow(life * 1000)
                endsAt = end.overflow ? nil : end.partialValue
            }
            report("taken from the answer: \(extraction.parts.map(\.name).joined(separator: ", "))")
        } catch {
            throw unusable(error.reason, answer)
        }
    }

    private func unusable(_ reason: String, _ answer: ExaminedResponse) -> LoginFailure {
        failure(
            "The server's answer to the login \(reason). Check `login.extract`, and say by `failed` what tells a wrong "
                + "password.", answer)
    }

    /// Forgets the cookies of another address.
    mutating func forgetCookies() { jar = CookieJar() }

    /// The cookies that the session is to have: callers get those of `passed` as well, and those of `dropped` were for the login only.
    func cookies(passing passed: Set<String>, dropping dropped: Set<String> = []) -> CookieJar {
        var jar = jar
        for name in dropped { jar.remove(name: name) }
        jar.pass(names: passed)
        return jar
    }

    /// The session of `cookies` and `fields`.
    func session(_ cookies: CookieJar, fields: [InjectedField] = []) -> Session {
        Session(
            fields: fields, expiresAt: [cookies.expiresAt, endsAt].compactMap(\.self).min(),
            cookies: cookies.isEmpty ? nil : SessionCookies(cookies))
    }

    /// The failure where a response says only that the server is in trouble.
    func trouble(in response: ExaminedResponse, _ step: String) -> LoginFailure? {
        guard response.status >= 500 || [400, 408, 429].contains(response.status) else { return nil }
        return failure(
            "The server answered the \(step) with status \(response.status), which says nothing about the credential. A later "
                + "request tries again; if it stays so, look at the server, and check the addresses in `login`.",
            response)
    }

    /// A failure that says nothing about the credential.
    func failure(_ detail: String, _ response: ExaminedResponse? = nil) -> LoginFailure {
        LoginFailure(
            .failed, challenge: name, detail: detail,
            retryAt: response.flatMap { Moment.retry(after: $0.fields, now: conversation.now()) })
    }

    /// The address that a redirect names (RFC 9110 §15.4).
    static func redirect(in response: ExaminedResponse) -> WebURL? {
        guard [301, 302, 303, 307, 308].contains(response.status), let location = response.fields[.location] else {
            return nil
        }
        return response.url.resolving(location)
    }

    /// The address that a redirect names, if it is one of the same origin: no other is followed.
    static func redirectWithinOrigin(in response: ExaminedResponse) -> WebURL? {
        guard let next = redirect(in: response), next.origin == response.url.origin else { return nil }
        return next
    }

    /// The address that `reference` means at `address`; `other` where there is none.
    func resolve(
        _ reference: String?, at address: WebURL, else other: WebURL
    ) throws(LoginFailure) -> WebURL {
        guard let reference else { return other }
        guard let resolved = address.resolving(reference) else {
            throw failure("An address of the login is none that can be asked for. Check `login`.")
        }
        return resolved
    }

    func report(_ text: String) {
        conversation.report(ConversationStep(challenge: name, text: text))
    }

    private func noAnswer(_ error: SideRequestError, _ step: String) -> LoginFailure {
        var failure = LoginFailure(error, step: "the \(step)", challenge: name)
        if error.kind == .timedOut {
            failure.detail += " `login.timeout` says how long is waited."
        }
        return failure
    }
}
