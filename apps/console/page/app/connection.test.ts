import { expect, it } from "vitest";
import { serverUrl } from "./connection.ts";

it.each([
	["http://127.0.0.1:7575/console/", "http://127.0.0.1:7575"],
	["http://127.0.0.1:7575/console/#/types/demo.v1.Artist?q=%2F..%2F", "http://127.0.0.1:7575"],
	["https://proxy.example/team/plinth/console/?a=b#/", "https://proxy.example/team/plinth"],
	["https://proxy.example/console/console/index.html", "https://proxy.example/console"],
])("the server of the page %s is %s", (page, server) => {
	expect(serverUrl(page)).toBe(server);
});
