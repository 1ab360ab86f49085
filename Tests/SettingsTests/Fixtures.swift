// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import SettingsReading

/// Returns the errors without the warnings.
func errors(_ yaml: String) -> [String] {
    problems(yaml).filter { !$0.contains(": warning: ") }
}

/// Returns the problems of a text as lines; its file is called `f`.
func problems(_ yaml: String, environment: [String: String] = [:]) -> [String] {
    Settings.parse(Array(yaml.utf8), file: "f", environment: environment).problems.map(\.description)
}

/// Returns the settings of a text, or `nil` if it has errors.
func parsed(_ yaml: String, environment: [String: String] = [:]) -> Settings? {
    Settings.parse(Array(yaml.utf8), file: "f", environment: environment).settings
}

/// Returns a listener and an upstream `u` with a MobileFirst server, in three lines; `upstream` has further keys of `u`.
func frame(upstream: String = "", listener: String = "", _ rest: String = "") -> String {
    """
    listeners: [{ address: "127.0.0.1:8080", upstream: u\(listener.isEmpty ? "" : ", \(listener)") }]
    upstreams:
      u: { url: "https://u.example/", mobilefirst: { application: a }\(upstream.isEmpty ? "" : ", \(upstream)") }
    \(rest)
    """
}

/// Returns a frame with one challenge in line 5; `keys` are the challenge's keys.
func challenge(_ keys: String, upstream: String = "") -> String {
    frame(upstream: upstream, "challenges:\n  - { \(keys) }")
}

/// Every key of the format.
let everything = """
    listeners:
      - address: 127.0.0.1:8080
        upstream: bank
        hosts: [bank.localhost, Ledger.Example.]
        users: [www-data, "1001"]
        routes:
          - { host: ledger.localhost, upstream: ledger }
          - { path: /accounts/, methods: [GET, HEAD], users: [ann], upstream: bank, strip-prefix: true }
        browsers: ["https://APP.example", "http://app.example"]
        auth-requests: false
      - { address: "unix:/run/c.sock?mode=0660", upstream: bank, callers: 7 }
      - { address: "systemd:http", upstream: bank }
    admin: { address: [unix:/run/admin.sock, "[::1]:9180"] }
    upstreams:
      bank:
        url: https://mfp.example.com/mfp/api/adapters/
        tls: { ca: /ca.pem, certificate: /c.pem, key: /k.pem, pin: sha256//YhKJKSzoTt2b5FP18fvpHo7fJYqQCjAa3HWY3tvRMwE= }
        http: 1.1
        timeouts: { connect: 500ms, response: 2m, idle: 1h, login: 90s }
        replay: { memory: 1KiB, disk: 1GiB }
        proxy: socks5h://[::1]:1080
        host: pass
        caller-credentials: keep
        forwarded: x-forwarded
        plaintext: allow
        check: { path: "/health?deep=1", status: [200, 204], every: 1m }
        mobilefirst:
          api: http://mfp.example.com/mfp/api/
          application: com.sample.pincode
          platform: android
          version: 2.1
          scope: one two
      ledger: { url: "http://127.0.0.1:9/l" }
    credentials:
      sources: [env, systemd, { keyring: /k, key-file: /f, ask: true }, { exec: [/h, -x] }]
      ask: { bank-pin: [pin, tan] }
    challenges:
      - name: bank-pin
        at: mfp.example.com/*
        security-check: PinCodeAttempts
        credential: bank-pin
        answer: { pin: "{pin}", rememberMe: true, n: [1, 1.5, ~, "1"] }
        keep-attempts: 2
        answer-url: /login
        login: at-start
        retry-rejected: 30m
        prove-at: /whoami
      - name: portal
        at: ["https://portal.example.com/*", "*.portal.example.com:*/*"]
        gateway: none
        credential: portal
        detect: { status: [200, 403], body-contains: pkmslogin.form, header: { X-A: b }, content-type: text/html }
        login:
          - { when: at-start, page: /login, url: form, fields: hidden }
          - url: https://portal.example.com/pkmslogin.form
            method: PUT
            parameters: { username: "{username}", j_password: "{password}" }
            body: json
            headers: { X-Requested-With: us }
            timeout: 3s
        success: [{ cookie: PD-S-SESSION-ID }, { redirect-to: /home }]
        failed: [{ body-contains: HPDIA0200W, because: wrong-password }, { header: X-Locked, because: locked }]
        logout: { url: /pkmslogout }
        cookies: { pass: [csrftoken, XSRF-TOKEN] }
      - name: corp
        upstream: ledger
        scheme: [negotiate, digest, basic]
        realm: Corp
        spn: HTTP/www.corp.example.com
        credential: corp
      - name: api
        upstream: bank
        scheme: bearer
        credential: api
        token:
          url: https://id.example.com/token
          grant: client-credentials
          scope: [read, write]
          audience: https://api.example.com/
          parameters: { resource: "{tenant}" }
          client-auth: private-key-jwt
          field: X-Auth
          prefix: Token
      - { name: key, upstream: ledger, inject: { X-Api-Key: "{key}", X-Tenant: blue }, credential: ledger-key }
      - name: scripted
        upstream: ledger
        gateway: form
        credential: portal
        login: { exec: [/usr/lib/countersign/browser-login, --no-sandbox], page: /sign-in, timeout: 20s }
      - name: scripted-apart
        upstream: ledger
        gateway: none
        credential: portal
        detect: { body-contains: app.js }
        login: { socket: /run/countersign-browser.sock, when: at-start }
    limits: { callers: 1, exchanges: 2, waiters: 3, head: 4KiB, replay: 2GiB }
    audit: none
    workers: 2
    log: { level: debug, format: json }
    sessions:
      store: rediss://sessions.example.com/2
      prefix: blue
      key: shared
      credential: store
      tls: { ca: /ca.pem }
      lease: 20s
      spread: 3s
    """
