import { expect, it } from "vitest";
import { check, projectWith } from "./project.fixture.ts";

const clean = {
	"src/response.ts":
		'// Whether others are busy, and at once.\nexport const response = "Given a name, others says so";\n',
	"docs/page.md": "A weathered page. The answer, for good reason.\n",
	"src/gen/a_pb.ts": "export const answers = 1; // whoever\n",
	"CHANGELOG.md": "| `Busy` | answers anew |\n",
	"pnpm-lock.yaml": "whoever: 1\n",
};

it("passes on other words, on generated code, and on what is exempt", () => {
	expect(check("check-words.ts", projectWith(clean))).toEqual({ status: 0, stderr: "" });
});

it("fails on each banned word, with its line and what to write instead", () => {
	const planted: readonly (readonly [string, string, string])[] = [
		["src/comment.ts", "/** Whoever calls. */", "Whoever"],
		["src/part.ts", "export function fooAnswered() {}", "Answered"],
		["src/message.ts", "throw new Error(`asked anew`);", "anew"],
		["src/class.ts", "export class TargetIsBusy {}", "TargetIsBusy"],
		["src/value.ts", "const requestsAtOnce = 1;", "requestsAtOnce"],
		["src/field.ts", "interface Flag { readonly says: string }", "says"],
		["src/type.ts", "interface Others {}", "Others"],
		["docs/verb.md", "The server answers with a page.", "answers"],
		["docs/where.md", "Where there is none, nothing is sent.", "Where there is"],
		["proto/a.proto", "// Lets go of the lease.", "Lets go of"],
		["config.yaml", "# asked for good", "for good"],
	];
	const folder = projectWith({
		...clean,
		...Object.fromEntries(planted.map(([path, line]) => [path, `\n${line}\n`])),
	});
	const { status, stderr } = check("check-words.ts", folder);
	expect(status).toBe(1);
	expect(
		stderr
			.trim()
			.split("\n")
			.map((line) => line.replace(/: write \w.*$/, ""))
			.sort(),
	).toEqual(planted.map(([path, , word]) => `${path}:2: "${word}"`).sort());
});

it("fails on the name of a file", () => {
	const { status, stderr } = check("check-words.ts", projectWith({ "src/final-answers.ts": "" }));
	expect({ status, stderr }).toEqual({
		status: 1,
		stderr: expect.stringMatching(/^src\/final-answers\.ts: the file's name has "answers": write /),
	});
});
