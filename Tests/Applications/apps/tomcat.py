# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors

import html
import re

from application import Application

SERVER = """<Server port="-1">
  <GlobalNamingResources>
    <Resource name="users" auth="Container" type="org.apache.catalina.UserDatabase" pathname="conf/users.xml"
        factory="org.apache.catalina.users.MemoryUserDatabaseFactory" readonly="true"/>
  </GlobalNamingResources>
  <Service name="Catalina">
    <Connector port="{port}" address="127.0.0.1"/>
    <Engine name="Catalina" defaultHost="localhost">
      <Realm className="org.apache.catalina.realm.UserDatabaseRealm" resourceName="users"/>
      <Host name="localhost" appBase="webapps" autoDeploy="false" deployOnStartup="false">
        <Context path="/manager" docBase="/usr/share/tomcat10-admin/manager" privileged="true"/>
        <Context path="/farm" docBase="{folder}/farm"/>
      </Host>
    </Engine>
  </Service>
</Server>
"""
# What each application of the server has.
WEB = """<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">
  <servlet><servlet-name>default</servlet-name><servlet-class>org.apache.catalina.servlets.DefaultServlet</servlet-class></servlet>
  <servlet><servlet-name>jsp</servlet-name><servlet-class>org.apache.jasper.servlet.JspServlet</servlet-class></servlet>
  <servlet-mapping><servlet-name>default</servlet-name><url-pattern>/</url-pattern></servlet-mapping>
  <servlet-mapping><servlet-name>jsp</servlet-name><url-pattern>*.jsp</url-pattern></servlet-mapping>
  <welcome-file-list><welcome-file>index.html</welcome-file></welcome-file-list>
</web-app>
"""


class TomcatManager(Application):
    title = "Tomcat manager"
    login = "Basic, with a nonce against forged requests"
    debian = ["tomcat10-admin", "tomcat10-common", "default-jre-headless"]
    configuration = """
upstreams:
  tomcat:
    url: https://tomcat.example.com/

challenges:
  - name: tomcat
    upstream: tomcat
    scheme: basic
    credential: tomcat
"""
    page = ("/manager/html", "Tomcat Web Application Manager")
    open_page = ("/farm/", "hens")
    not_for = {"ended": "each request carries the password"}

    def start(self):
        self.file("conf/server.xml", SERVER.format(port=self.port, folder=self.folder))
        self.file("conf/users.xml", f"""<tomcat-users><role rolename="manager-gui"/>
<user username="{self.username}" password="{self.password}" roles="manager-gui"/></tomcat-users>""")
        self.file("conf/web.xml", WEB)
        self.file("farm/index.html", "<p>hens</p>")
        home = "/usr/share/tomcat10"
        self.serve(
            "java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{home}/bin/bootstrap.jar:{home}/bin/tomcat-juli.jar",
            f"-Dcatalina.base={self.folder}", f"-Dcatalina.home={home}", f"-Djava.io.tmpdir={self.folder}",
            "org.apache.catalina.startup.Bootstrap", "start", answers="/farm/")

    def write(self, caller):
        page = html.unescape(caller.get("/manager/html").text)
        found = re.search(r'action="(/manager/html/reload[^"]*path=/farm&[^"]*)"', page)
        assert found, "the page has no form to reload"
        answer = caller.post(found[1])
        assert "OK - Reloaded application" in answer.text, f"nothing was reloaded: {answer}"
        return answer
