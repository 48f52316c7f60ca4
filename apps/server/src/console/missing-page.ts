/** Why there is no console. */
export type MissingConsole = "not built" | "not installed" | "being built" | "not buildable";

const texts: Readonly<Record<MissingConsole, { why: string; command?: string }>> = {
	"not built": {
		why: "The console is not built. Build it in the root of the repository:",
		command: "npx -y pnpm@12 --filter @plinth/console build",
	},
	"being built": {
		why: "The console is being built, which takes some seconds. This page shows it as soon as it is there.",
	},
	"not buildable": {
		why: "The console could not be built, and the server does not try that again. Mend what failed, and build it in the root of the repository:",
		command: "npx -y pnpm@12 --filter @plinth/console build",
	},
	"not installed": {
		why: "The console is not installed. Install its package beside that of the server, and start the server again:",
		command: "npm install @plinth/console",
	},
};

/**
 * How long a client should wait before it asks again, in seconds: the page does so by itself. A page without a console to
 * wait for is asked for again too, since somebody may build it.
 */
export function retrySeconds(missing: MissingConsole): number {
	return missing === "being built" ? 1 : 5;
}

/**
 * Loads the page again: a file of its own, since the content security policy allows no scripts in the page. A `refresh` in the
 * page would not do: if the URL has a fragment, as links of the console have, browsers only go to the fragment. The time
 * begins when the page has loaded, so that it is seen in between, however slow the machine is.
 */
export const reloadScript = {
	name: "reload.js",
	text: `const { seconds } = document.currentScript.dataset;
addEventListener("load", () => setTimeout(() => location.reload(), 1000 * seconds));
`,
} as const;

/**
 * The page in place of a missing console. It loads again by itself, and is the console once that is built.
 *
 * @param output - what a failed build has written.
 */
export function missingPage(missing: MissingConsole, output = ""): string {
	const { why, command } = texts[missing];
	const failure = output.trim();
	const blocks = [
		...(command === undefined ? [] : [`<pre>${escaped(command)}</pre>`]),
		...(failure === "" ? [] : ["<h2>What failed</h2>", `<pre>${escaped(failure)}</pre>`]),
	];
	return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<script src="${reloadScript.name}" data-seconds="${retrySeconds(missing)}" defer></script>
<noscript><meta http-equiv="refresh" content="${retrySeconds(missing)}"></noscript>
<title>Plinth console: ${missing}</title>
<h1>Plinth</h1>
<p>${why}</p>
${blocks.join("\n")}
<p>All else works without it.</p>
</html>
`;
}

function escaped(text = ""): string {
	return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
