import { spawn } from "node:child_process";

/** The programs that open a URL in the browser of the user, by systems. */
const openers: Partial<Record<NodeJS.Platform, readonly [program: string, ...args: string[]]>> = {
	darwin: ["open"],
	// `start` is a part of the shell, which would interpret characters of the URL.
	win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Opens a URL in the browser of the user. Returns whether there is a program for that. */
export async function openUrl(url: string): Promise<boolean> {
	const [program, ...args] = openers[process.platform] ?? ["xdg-open"];
	const opener = spawn(program, [...args, url], { stdio: "ignore", detached: true });
	opener.unref();
	return new Promise((resolve) => {
		opener.once("spawn", () => resolve(true));
		opener.once("error", () => resolve(false));
	});
}
