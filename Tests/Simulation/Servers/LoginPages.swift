// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The ways of an application that shows its own login form.
struct FormTraits {
    /// The preset in the configuration.
    enum Preset { case form, jSecurityCheck, none }

    /// The answer to a wrong password.
    enum Failure: CaseIterable { case page, redirect, unauthorized, forbidden }

    /// The answer to the right password.
    enum Success: CaseIterable {
        /// A redirect to a page of welcome.
        case welcome
        /// A redirect to the address that had shown the form.
        case saved
        /// A page without a mark.
        case plain
        /// A redirect to another server.
        case foreign
    }

    /// A mistake that the application makes at times.
    enum Lapse: CaseIterable {
        /// It answers the right password with 403.
        case forbids
        /// The login form answers with a page without any mark, and without a session.
        case saysNothing
        /// It answers it without a cookie.
        case forgetsCookie
        /// Its form goes to another server.
        case sendsElsewhere
        /// A value of its page has a line break.
        case breaksValue
    }

    let preset: Preset
    /// True if the address of the upstream itself is open to all, and shows no form.
    let isEntranceOpen: Bool
    /// True if the configuration names the login page.
    let isPageNamed: Bool
    /// The status of the redirect to the login page; `nil` if the form is shown in place of a resource.
    let redirect: Int?
    /// The status of the form in place of a resource.
    let pageStatus: Int
    let failure: Failure
    let success: Success
    let lapse: Lapse?
    /// True if the form has a hidden value that belongs to a cookie.
    let hasHiddenToken: Bool
    /// True if the form comes with a cookie that is not a session.
    let hasLanguage: Bool
    /// True if the session has the cookie that came with the form.
    let keepsCookie: Bool
    /// True if a wrong password gets a new cookie too.
    let setsCookieOnFailure: Bool
    /// True if the configuration has evidence of success: the cookie.
    let hasSuccess: Bool
    /// True if the configuration takes the cookie from the answer.
    let extractsCookie: Bool
    /// True if the configuration names the address of the form.
    let isActionNamed: Bool
    /// True if the login must have a value of the page in a field.
    let hasNonce: Bool
    /// True if requests with effects need a copy of a cookie; `isDecoded`: without percent-encoding.
    let hasCopy: Bool
    let isDecoded: Bool
    /// True if the session has a cookie for one folder.
    let hasFolderCookie: Bool
    /// True if pages of guests hold forms of their own.
    let hasGuests: Bool
    /// True if the pages of guests hold the login form itself, for every caller.
    let isPortal: Bool
    /// True if the form's page has a `base` of another server.
    let hasBase: Bool

    init(_ chance: inout Chance, provesAt: Bool) {
        preset = chance.pick([.form, .jSecurityCheck, .none])
        isEntranceOpen = chance.oneIn(2)
        isPortal = isEntranceOpen && !provesAt && !chance.oneIn(3)
        isPageNamed = !isEntranceOpen && (provesAt ? chance.oneIn(3) : !chance.oneIn(3))
        redirect = preset != .jSecurityCheck && chance.oneIn(2) ? chance.pick([302, 303, 307]) : nil
        pageStatus = chance.pick([200, 200, 401, 403])
        failure = chance.pick(Failure.allCases + [.forbidden, .page])
        let keeps = chance.oneIn(isPortal ? 2 : 3)
        var ways: [Success] = keeps ? [.welcome, .plain] : Success.allCases
        // Without a new cookie and a redirect nothing tells a success there.
        if keeps, preset == .jSecurityCheck || isPageNamed { ways = [.welcome] }
        if isPortal, preset != .jSecurityCheck || !keeps { ways = keeps ? [.plain] : [.saved, .saved, .plain] }
        success = chance.pick(ways)
        keepsCookie = keeps
        hasHiddenToken = preset != .jSecurityCheck && chance.oneIn(3)
        extractsCookie = preset == .none && !keeps && !isPortal && !chance.oneIn(3)
        hasSuccess = !keeps && !extractsCookie && chance.oneIn(isPortal ? 2 : 3)
        setsCookieOnFailure = !keeps && !hasSuccess && !chance.oneIn(extractsCookie ? 4 : 2)
        isActionNamed = preset == .none && chance.oneIn(2)
        hasNonce = preset == .none && chance.oneIn(2)
        let mistakes: [Lapse] =
            [.forbids] + (isPageNamed && !provesAt ? [.saysNothing, .saysNothing] : [])
            // A session of the page's own cookie cannot be distinguished from one that works.
            + (isPageNamed && !provesAt && !hasHiddenToken && !keeps && success != .saved
                ? [Lapse](repeating: .forgetsCookie, count: 4) : [])
            + (isActionNamed ? [] : [.sendsElsewhere]) + (hasNonce ? [.breaksValue, .breaksValue] : [])
        lapse = chance.oneIn(3) ? nil : chance.pick(mistakes)
        hasLanguage = lapse != .forgetsCookie && chance.oneIn(2)
        // A copy of a cookie counts as a session.
        hasCopy = lapse != .forgetsCookie && chance.oneIn(3)
        isDecoded = chance.oneIn(2)
        hasFolderCookie = !keeps && chance.oneIn(3)
        hasGuests = isPortal || chance.oneIn(2)
        hasBase = isEntranceOpen && !provesAt && redirect == nil && chance.oneIn(3)
    }
}

extension Account {
    /// Returns true if a page makes its mistake now, which disturbs the login.
    func lapses() -> Bool {
        guard simulation.isStormy, simulation.chance.oneIn(3) else { return false }
        disturbed()
        return true
    }
}

/// The text of a login page.
struct LoginPageText {
    let traits: FormTraits
    /// The words by which the configuration recognises the page.
    let words: String
    var message = "Please log in."
    var action: String
    /// The hidden inputs.
    var hidden: [(name: String, value: String)] = []
    /// The name of a box that is checked.
    var box: String?
    /// The value that the login must have in a field.
    var nonce: String?
    var base: String?

    init(_ traits: FormTraits, words: String) {
        self.traits = traits
        self.words = words
        action = Self.action(of: traits)
    }

    /// Returns the address of the form.
    static func action(of traits: FormTraits) -> String {
        traits.preset == .jSecurityCheck ? "/base/j_security_check" : "/base/login"
    }

    /// Returns the names of the inputs for user and password.
    static func names(of traits: FormTraits) -> (user: String, password: String) {
        traits.preset == .jSecurityCheck ? ("j_username", "j_password") : ("user", "pass")
    }

    var html: String {
        let names = Self.names(of: traits)
        var text = "<html><head>"
        if let base { text += "<base href=\"\(base)\">" }
        text += "</head><body class=\"\(words)\"><p>\(message)</p>"
        if let nonce { text += "<i data-nonce=\"\(nonce)\"></i>" }
        text += "<form method=\"post\" action=\"\(action)\">"
        for input in hidden { text += "<input type=\"hidden\" name=\"\(input.name)\" value=\"\(input.value)\">" }
        if let box { text += "<input type=\"checkbox\" checked name=\"\(box)\" value=\"1\">" }
        text += "<input type=\"text\" name=\"\(names.user)\"><input type=\"password\" name=\"\(names.password)\">"
        return text + "<input type=\"submit\" value=\"Log in\"></form></body></html>"
    }
}

/// Answers that resemble login pages but are not, or would be with another media type: rule 12.
enum PageLook: CaseIterable {
    /// The beginning of a page that a detector sees, in bytes.
    private static let seen = 64 * 1024

    /// A page longer than a detector reads, with the words of a login page after that.
    case long
    /// A page that comes slowly.
    case slow
    /// The words of a login page in a text.
    case text
    /// The same in JSON.
    case json
    /// A part of a page (RFC 9110 §15.3.7).
    case part
    /// A compressed page.
    case compressed
    /// A refusal of the resource's own, as text.
    case refusal
    /// A redirect to a server that does not belong to any login.
    case moved

    /// Returns the kind of answer to an order; `nil` for bytes that are not a page.
    static func look(of number: Int, at server: SimulatedServer) -> PageLook? {
        guard server.protection.needsBody || server.protection is SignOnProtection, number % 2 == 0 else { return nil }
        let all = allCases
        return all[number / 2 % all.count]
    }

    /// Gives `answer` that look.
    func dress(_ answer: inout ServerAnswer, to request: ServerRequest, at server: SimulatedServer) {
        let words = Array(String(decoding: server.protection.refusal().body, as: UTF8.self).utf8)
        let own = Array("<html><body>an answer ".utf8) + answer.body.prefix(40).map { 0x61 + $0 % 26 }
        let chance = server.simulation.chance.below(4)
        func set(_ status: Int, _ type: String, _ body: [UInt8], pause: SlowAnswer.Pause?) {
            answer.status = status
            answer.fields.removeAll { ["content-type", "location"].contains($0.name.lowercased()) }
            answer.fields.append(("Content-Type", type))
            answer.body = body
            if chance == 0, request.method != "HEAD", !request.isSide, !answer.isTruncated { answer.pause = pause }
        }
        let prompt = SlowAnswer.Pause(after: 100, mayBeHeld: false)
        switch self {
        case .long:
            let filler = [UInt8](repeating: 0x2E, count: Self.seen)
            set(200, "text/html", own + filler + words, pause: .init(after: Self.seen + 40, mayBeHeld: false))
        case .slow:
            let filler = [UInt8](repeating: 0x2E, count: 400)
            set(200, "Text/HTML ; charset=utf-8", own + filler, pause: .init(after: 100, mayBeHeld: true))
        case .text: set(200, "text/plain", own + words, pause: prompt)
        case .json: set(200, "application/vnd.api+json", own + words, pause: prompt)
        case .part:
            // It may be a part of the login page, and is held until that was asked for.
            set(206, "text/html", own + words, pause: .init(after: 100, mayBeHeld: true))
            answer.fields.append(("Content-Range", "bytes 0-\(answer.body.count - 1)/100000"))
        case .compressed:
            guard request.value("accept-encoding")?.contains("gzip") == true else { return }
            set(200, "text/html", GzipText.encode(own), pause: nil)
            answer.fields.append(("Content-Encoding", "gzip"))
        case .refusal:
            // The text of a security check is searched in a 401, that of a page in a 403.
            let status = server.protection is CheckProtection ? 401 : 403
            // The text of a signature's verifier is searched in any answer.
            let isHeld = server.protection is SignedProtection
            set(status, "text/plain", own + words, pause: isHeld ? .init(after: 100, mayBeHeld: true) : prompt)
        case .moved:
            set(302, "text/plain", own, pause: nil)
            answer.fields.append(("Location", "\(ApplicationForm.elsewhere)/files"))
        }
    }
}
