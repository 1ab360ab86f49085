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
        /// A page without a sign.
        case plain
        /// A redirect to another server.
        case foreign
    }

    /// A mistake that the application makes at times.
    enum Lapse: CaseIterable {
        /// It answers the right password with 403.
        case forbids
        /// It answers it with a page without any sign, and without a session.
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
    /// True if the form comes with a cookie that is no session.
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
    /// True if requests with effects need a copy of a cookie; `isDecoded`: without percent signs.
    let hasCopy: Bool
    let isDecoded: Bool
    /// True if the session has a cookie for one folder.
    let hasFolderCookie: Bool
    /// True if pages of guests hold forms of their own.
    let hasGuests: Bool
    /// True if the pages of guests hold the login form itself, whoever asks.
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
            // A session of the page's own cookie cannot be told from one that works.
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
