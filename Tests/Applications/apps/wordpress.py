# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

from mariadb import MariaDBApplication
from web import Caller

SETTINGS = """<?php
define('DB_NAME', 'farm');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:{socket}');
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $key) {{
    define($key . '_KEY', 'key of the farm' . $key);
    define($key . '_SALT', 'salt of the farm' . $key);
}}
$table_prefix = 'wp_';
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
"""


class WordPress(MariaDBApplication):
    title = "WordPress"
    login = "form"
    debian = ["wordpress", *MariaDBApplication.debian]
    configuration = r"""
upstreams:
  wordpress:
    url: https://wordpress.example.com/

challenges:
  - name: wordpress
    upstream: wordpress
    gateway: form
    credential: wordpress
    login:
      - { page: /wp-login.php, url: form, parameters: { log: "{username}", pwd: "{password}" }, fields: hidden }
      - { url: /wp-admin/admin-ajax.php?action=rest-nonce, method: GET, extract: { nonce: 'page:/(\w+)/' } }
    inject: { X-WP-Nonce: { value: "{nonce}", on: [POST, PUT, PATCH, DELETE] } }
    prove-at: /wp-admin/profile.php
"""
    page = ("/wp-admin/profile.php", 'id="your-profile"')
    open_page = ("/index.php?rest_route=/", "Farm of Ann")

    def start(self):
        self.serve_mariadb()
        self.root = self.path("pages")
        self.run("cp", "-rL", "/usr/share/wordpress", self.root)
        self.file("pages/wp-config.php", SETTINGS.format(socket=self.socket))
        self.serve_php(answers="/wp-admin/install.php")
        # Its address is that under which it is installed.
        answer = Caller(self.public_port).post("/wp-admin/install.php?step=2", form={
            "weblog_title": "Farm of Ann", "user_name": self.username, "admin_password": self.password, "admin_password2": self.password,
            "pw_weak": "1", "admin_email": "a@example.com", "blog_public": "0", "Submit": "Install", "language": ""})
        assert "Success" in answer.text, f"not installed: {answer}"

    def end_sessions(self):
        self.sql("DELETE FROM wp_usermeta WHERE meta_key = 'session_tokens'")

    def write(self, caller):
        answer = caller.post("/index.php?rest_route=/wp/v2/posts", document={"title": "Hens", "status": "publish"})
        return answer
