// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FieldBytes
internal import HTTPTypes
internal import Secrets

/// HTTP client of one login at a gateway, with the cookies that it collects.
struct GatewayClient {
    /// A page, and what the redirects to it have shown.
    struct Page {
        var response: ExaminedResponse
        /// True if the page or a redirect to it asked for a login.
        var asksForLogin = false
        /// True if the head of a redirect on the way asked for a login.
        var isAskedByRedirect = false
        /// True if a redirect led to the page, to an address whose path names a login.
        var isLed = false
        /// The heads of the redirects to the page.
        var redirects: [ExaminedResponse] = []
    }

    /// The redirects to follow to a page.
    enum Redirects { case all, none, untilLoginPage }

    /// The number of redirects that are followed to a page.
    static let redirectLimit = 20

    /// The challenge's name, for failures and steps.
    let name: String
    let conversation: Conversation
    /// Returns whether a response asks for a login.
    let asksForLogin: (ExaminedResponse) -> Bool
    /// The timeout of a page.
    let timeout: Duration
    private(set) var jar = CookieJar()
    /// The last response.
    private(set) var latest: ExaminedResponse?
    /// What a browser would have done otherwise, as sentences.
    private(set) var faults: Set<String> = []
    /// The values extracted from answers so far.
    private(set) var extracted: [String: Secret] = [:]
    /// The end of the session as an answer states it, in milliseconds since 1970.
    private(set) var endsAt: Int64?
    /// The session whose cookies and fields are sent. `nil` if a new one is being established.
    private let session: Session?

    init(
        name: String, conversation: Conversation, timeout: Duration = .seconds(10), session: Session? = nil,
        asksForLogin: @escaping (ExaminedResponse) -> Bool
    ) {
        self.session = session
        self.timeout = timeout
        jar = session?.cookies?.snapshot ?? CookieJar()
        self.name = name
        self.conversation = conversation
        self.asksForLogin = asksForLogin
    }

    /// Fetches a page, following redirects within its origin. Throws if the server is in trouble.
    mutating func open(_ address: WebURL, _ step: String) async throws(LoginFailure) -> Page {
        let page = try await fetch(address, step)
        if let failure = trouble(in: page.response, step) { throw failure }
        return page
    }

    /// Fetches a page on behalf of a waiting request. Returns `nil` if the server cannot be reached, since that request
    /// will report it. Throws if the answer timed out.
    mutating func fetchIfReachable(_ address: WebURL) async throws(LoginFailure) -> Page? {
        do throws(LoginFailure) {
            return try await fetch(address, "page")
        } catch {
            if error.code == .timedOut { throw error }
            return nil
        }
    }

    /// Fetches a page, with any status.
    mutating func fetch(
        _ address: WebURL, _ step: String, following redirects: Redirects = .all
    ) async throws(LoginFailure) -> Page {
        var address = address
        var page = Page(response: ExaminedResponse(status: 0, url: address))
        var visited: Set<WebURL> = [address]
        for _ in 0...Self.redirectLimit {
            var request = SideRequest(
                method: .get, url: address, fields: [.accept: SideRequest.pageTypes], timeout: timeout)
            request.allowsPartialBody = true
            let response = try await send(request, step, isPage: true)
            page.response = response
            if self.asksForLogin(response) {
                page.asksForLogin = true
                page.isAskedByRedirect = page.isAskedByRedirect || (300...399).contains(response.status)
            }
            guard redirects == .all || redirects == .untilLoginPage && !page.asksForLogin else { return page }
            switch next(after: page, visited, step) {
            case nil: return page
            case (let next, let isServers)?:
                page.isLed = page.isLed || isServers && next.path != address.path && next.namesLogin
                address = next
            }
            visited.insert(address)
            var head = response
            head.body = nil
            page.redirects.append(head)
        }
        throw failure("The server answers with more than \(Self.redirectLimit) redirects, one after the other.")
    }

    /// Returns the address within the origin to which a page leads, by a redirect or by a refresh of a page that asks for no
    /// login. `isServers`: the server led there, not a page that others may have written.
    private func next(
        after page: Page, _ visited: Set<WebURL>, _ step: String
    ) -> (address: WebURL, isServers: Bool)? {
        let response = page.response
        switch ResponseRedirect(of: response) {
        case .to(let next): return next.origin == response.url.origin ? (next, true) : nil
        case .unreadable(let fault):
            report("\(step): the redirect is not followed, its address \(fault.reason)")
            return nil
        case .none: break
        }
        guard !page.asksForLogin, let refresh = PageRefresh(of: response), !visited.contains(refresh.target),
            refresh.target.origin == response.url.origin
        else { return nil }
        report("\(step): the page leads to \(refresh.target.path) by a refresh")
        // Somebody who may put a page into a folder may put another one beside it.
        let isServers = refresh.isOfField || response.status >= 400 || !refresh.target.isBeside(response.url)
        return (refresh.target, isServers)
    }

    /// Sends one request with its cookies, and stores the cookies of the answer. `site`: relation to the page before.
    /// `isPage`: it has no effects, and may be sent twice.
    mutating func send(
        _ request: SideRequest, _ step: String, from site: RequestSite = .same, isPage: Bool = false
    ) async throws(LoginFailure) -> ExaminedResponse {
        var request = request
        if let cookies = jar.header(for: request.url, now: conversation.now(), in: site) {
            request.fields.set(.cookie, to: cookies.revealBytes())
        }
        for field in session?.fields ?? [] { request.fields[field.name] = field.value.revealText() }
        let answer: SideResponse
        do throws(SideRequestError) {
            answer = try await isPage ? sendTwice(request, step) : conversation.sideRequests.send(request)
        } catch {
            report("\(step): no answer, \(error.reason)")
            throw noAnswer(error, step)
        }
        report("\(step): \(answer.status)")
        if answer.status == 200, answer.body.isEmpty, let coding = answer.fields[.contentEncoding] {
            report("\(step): the answer cannot be read, its content coding is \(ServerText.name(coding))")
        }
        for value in answer.fields.bytes(of: .setCookie) {
            let isKept = jar.store(value, from: request.url, now: conversation.now())
            _ = session?.cookies?.take(value, from: request.url, now: conversation.now())
            if !isKept { report("\(step): a cookie that this address may not set was refused") }
            if SetCookie(value, now: conversation.now()) == nil {
                faults.insert("a cookie of the login could not be read")
            }
        }
        let response = ExaminedResponse(
            status: answer.status, fields: answer.fields, body: answer.body, method: request.method, url: request.url)
        latest = response
        return response
    }

    /// Submits the credential. A request that certainly did not reach the server is no submission.
    mutating func submit(
        _ request: SideRequest, _ step: String, isFirst: Bool = true, of use: CredentialUse
    ) async throws(LoginFailure) -> ExaminedResponse {
        var request = request
        var answer: ExaminedResponse
        do throws(LoginFailure) {
            answer = try await send(request, step)
        } catch {
            if isFirst, error.isUnsent { await use.withdrawSubmission(in: conversation) }
            throw error
        }
        for _ in 0..<Self.redirectLimit {
            guard let again = repetition(of: request, after: answer) else { break }
            guard again.isSpelling(of: request.url) else {
                faults.insert(
                    "the server asked to send the form again to another address, \(again.path), which `login.url` may name"
                )
                break
            }
            request.url = again
            answer = try await send(request, step)
        }
        return answer
    }

    /// Returns the address within the origin to which a redirect sends a request again, with its body: browsers do so after 307
    /// and 308 (RFC 9110 §15.4.8), other redirects lead to a page.
    func repetition(of request: SideRequest, after answer: ExaminedResponse) -> WebURL? {
        guard [307, 308].contains(answer.status), request.method != .get, request.method != .head else { return nil }
        return Self.redirectWithinOrigin(in: answer)
    }

    /// Sends a request for a page, once more on a new connection if the first one was lost: a server that starts anew closes
    /// those that it has.
    private func sendTwice(_ request: SideRequest, _ step: String) async throws(SideRequestError) -> SideResponse {
        do throws(SideRequestError) {
            return try await conversation.sideRequests.send(request)
        } catch {
            guard error.kind == .unreachable, !error.isUnsent else { throw error }
            report("\(step): \(error.reason); it is sent once more, on a new connection")
            var request = request
            request.needsNewConnection = true
            return try await conversation.sideRequests.send(request)
        }
    }

    /// Makes `latest` the last response again.
    mutating func restore(latest: ExaminedResponse?) { self.latest = latest }

    /// Returns the values that the server has sent, with `response` as the last one, for a request to `url`.
    func received(with response: ExaminedResponse?, for url: WebURL) -> ReceivedValues {
        ReceivedValues(cookies: jar, url: url, response: response, now: conversation.now())
    }

    /// Stores a cookie of a response that another client received.
    mutating func store(_ setCookie: [UInt8], from url: WebURL) {
        jar.store(setCookie, from: url, now: conversation.now())
    }

    /// Extracts a step's values from its answer. Their lifetime counts from `sentAt`, when the request was sent.
    mutating func extract(
        _ extraction: GatewayExtraction, from answer: ExaminedResponse, sentAt: Int64
    ) throws(LoginFailure) {
        guard !extraction.isEmpty else { return }
        guard extraction.isOfHead || (200...299).contains(answer.status) else {
            throw unusable("has status \(answer.status)", answer)
        }
        do throws(GatewayExtraction.Unusable) {
            let values = try extraction.values(in: received(with: answer, for: answer.url))
            extracted.merge(values.fields) { $1 }
            if let seconds = values.lifetime {
                let end = sentAt.addingReportingOverflow(seconds * 1000)
                endsAt = end.overflow ? nil : end.partialValue
            }
            report("taken from the answer: \(extraction.parts.map(\.name).joined(separator: ", "))")
        } catch {
            throw unusable(error.reason, answer)
        }
    }

    /// Returns whether the head of an answer shows all values of `extraction`: only a login that worked has them.
    func hasValues(of extraction: GatewayExtraction, in answer: ExaminedResponse) -> Bool {
        guard extraction.isOfHead, ![401, 403].contains(answer.status) else { return false }
        let cookies = SetCookie.namesSet(by: answer.fields)
        return extraction.parts.allSatisfy { part in
            switch part.source {
            case .cookie(let name), .decodedCookie(let name): cookies.contains(name)
            case .header(let name): answer.fields[name] != nil
            case .json, .page: false
            }
        }
    }

    private func unusable(_ reason: String, _ answer: ExaminedResponse) -> LoginFailure {
        failure(
            "The server's answer to the login \(reason). Check `login.extract`, and configure `failed` to match a wrong "
                + "password.", answer)
    }

    /// Replaces all cookies.
    mutating func begin(with cookies: CookieJar) { jar = cookies }

    /// Drops all cookies.
    mutating func clearCookies() { jar = CookieJar() }

    /// Returns the session's cookies. Callers get those of `passed` as well; those of `dropped` were only for the
    /// login.
    func cookies(passing passed: Set<String>, dropping dropped: Set<String> = []) -> CookieJar {
        var jar = jar
        for name in dropped { jar.remove(name: name) }
        jar.pass(names: passed)
        return jar
    }

    func session(_ cookies: CookieJar, fields: [InjectedField] = []) -> Session {
        Session(
            fields: fields, expiresAt: [cookies.expiresAt, endsAt].compactMap(\.self).min(),
            cookies: cookies.isEmpty ? nil : SessionCookies(cookies))
    }

    /// Returns the failure for a response that shows only that the server is in trouble.
    func trouble(in response: ExaminedResponse, _ step: String) -> LoginFailure? {
        guard InconclusiveStatus.containsForForm(response.status) else { return nil }
        return failure(
            "The server answered the \(step) with status \(response.status), which says nothing about the credential. "
                + "A later request tries again; if the error persists, check the server and the addresses in `login`.",
            response)
    }

    /// Returns a failure that says nothing about the credential.
    func failure(_ detail: String, _ response: ExaminedResponse? = nil) -> LoginFailure {
        LoginFailure(
            .failed, challenge: name, detail: detail,
            retryAt: response.flatMap { Moment.retry(after: $0.fields, now: conversation.now()) })
    }

    private static let pageAdvice =
        "No login page was found. Set `login.page` to its address, or `prove-at` to one that needs a session, or "
        + "configure `detect` so that it matches the page."

    /// Returns the failure of a login whose search found no page.
    func pageNotFound(_ miss: LoginPageSearch.Miss, _ detail: String = Self.pageAdvice) -> LoginFailure {
        if let trouble = miss.trouble { return trouble }
        var failure = failure(detail, miss.last)
        // Nothing was sent: the next caller that meets the page supplies its address.
        failure.isCancelled = !miss.followedChallenge
        failure.lacksChallenge = !miss.followedChallenge
        return failure
    }

    /// Returns the address that a redirect within the origin names. No other redirect is followed.
    static func redirectWithinOrigin(in response: ExaminedResponse) -> WebURL? {
        guard let next = response.redirectTarget, next.origin == response.url.origin else { return nil }
        return next
    }

    /// Returns `reference` resolved against `address`; `other` without a reference.
    func resolve(
        _ reference: String?, at address: WebURL, else other: WebURL
    ) throws(LoginFailure) -> WebURL {
        guard let reference else { return other }
        guard let reference = AddressTemplate.filled(reference, with: extracted) else {
            throw failure(
                "A value of `login.extract` is empty or only dots, which an address of the login cannot contain.")
        }
        guard let resolved = address.resolving(reference) else {
            throw failure("An address of the login is not valid. Check `login`.")
        }
        return resolved
    }

    func report(_ text: String) {
        conversation.report(ConversationStep(challenge: name, text: text))
    }

    private func noAnswer(_ error: SideRequestError, _ step: String) -> LoginFailure {
        var failure = LoginFailure(error, step: "the \(step)", challenge: name)
        if error.kind == .timedOut {
            failure.detail += " `login.timeout` sets the limit."
        }
        return failure
    }
}
