import { describe, expect, it } from "vitest";
import { cacheFolder } from "./compile-cache.ts";

describe("cacheFolder", () => {
	it.each([
		["linux", { HOME: "/home/ann" }, "/home/ann/.cache"],
		["linux", { HOME: "/home/ann", XDG_CACHE_HOME: "/fast" }, "/fast"],
		["darwin", { HOME: "/Users/ann" }, "/Users/ann/Library/Caches"],
		["win32", { LOCALAPPDATA: "C:\\Users\\ann\\AppData\\Local" }, "C:\\Users\\ann\\AppData\\Local"],
		["win32", {}, undefined],
		["linux", { HOME: "/" }, undefined],
	])("on %s, of %j, is %s", (platform, env, folder) => {
		expect(cacheFolder(env, platform)).toBe(folder);
	});
});
