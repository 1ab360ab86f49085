// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@Suite("A restart under a real systemd")
struct RestartTests {
    @Test("fails no request of 32 connections and costs no login, nor does a kill")
    func restart() async throws {
        let scenario = SystemdScenario(
            configuration: Self.configuration,
            files: [
                "/etc/countersign/secrets/bank-pin.pin": "1234",
                "/etc/countersign/secrets/ann": #"{"username": "ann", "password": "demo"}"#,
                "/etc/countersign/secrets/api": #"{"client-id": "demo", "client-secret": "demo:secret+%"}"#,
            ], dropIn: Self.dropIn)
        try await scenario.run("restart")
    }

    private static let configuration = """
        listeners:
          - address: systemd:countersign
            upstream: bank
            routes:
              - { path: /basic/, upstream: server }
              - { path: /digest/, upstream: server }
              - { path: /form/, upstream: server }
              - { path: /oauth/, upstream: server }
              - { path: /checks/, upstream: server }
        upstreams:
          bank:
            url: http://127.0.0.1:8081/mfp/api/adapters/bank/
            mobilefirst: { application: com.sample.pincode, platform: android, version: "1.0" }
          server:
            url: http://127.0.0.1:8081/
        credentials: { sources: [systemd] }
        challenges:
          - name: bank-pin
            upstream: bank
            security-check: PinCodeAttempts
            credential: bank-pin
            answer: { pin: "{pin}" }
          - name: api
            at: http://127.0.0.1:8081/oauth/*
            scheme: bearer
            login: at-start
            credential: api
            token: { grant: client-credentials, url: "http://127.0.0.1:8081/oauth/token" }
          - name: checks
            at: http://127.0.0.1:8081/checks/*
            security-check: PinCode
            credential: bank-pin
            answer: { pin: "{pin}" }
            answer-url: /checks/login
          - name: basic
            at: http://127.0.0.1:8081/basic/*
            scheme: basic
            credential: ann
          - name: digest
            at: http://127.0.0.1:8081/digest/*
            scheme: digest
            credential: ann
          - name: page
            at: http://127.0.0.1:8081/form/*
            gateway: j-security-check
            credential: ann

        """

    private static let dropIn = """
        [Unit]
        StartLimitIntervalSec=0

        [Service]
        LoadCredential=bank-pin.pin:/etc/countersign/secrets/bank-pin.pin
        LoadCredential=ann:/etc/countersign/secrets/ann
        LoadCredential=api:/etc/countersign/secrets/api

        """
}
