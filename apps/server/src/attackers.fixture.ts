import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../testdata/attackers/main.ts", import.meta.url));

/** The target and duration of attacks, and the tokens to use. */
export interface AttackOptions {
	readonly address: string;
	/** A token with all rights in `namespace`. */
	readonly token: string;
	readonly namespace: string;
	/** A token without rights. */
	readonly powerless: string;
	readonly seconds: number;
	/** Names of attacks; all by default. */
	readonly attacks?: readonly string[];
}

type Outcome = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Runs each attacker in its own process. Returns the number of occurrences per event, by attack. */
export async function attack(options: AttackOptions): Promise<Outcome> {
	const { attacks = allAttacks, ...rest } = options;
	const outcomes = await Promise.all(
		attackers
			.map((names) => names.filter((name) => attacks.includes(name)))
			.filter((names) => names.length > 0)
			.map((names) => run(rest, names)),
	);
	return Object.assign({}, ...outcomes);
}

/** In a single process, connections would delay the other attacks. */
const attackers = [
	["healthWatches", "unreadLists", "unreadWatches", "slowHeaders"],
	["heldPages", "unfinishedBodies", "unfinishedMessages", "manyFields"],
	["resets", "foreignOrigin", "guessedTokens"],
] as const;

const allAttacks: readonly string[] = attackers.flat();

async function run(
	options: Omit<AttackOptions, "attacks">,
	attacks: readonly string[],
): Promise<Outcome> {
	const values = { ...options, attacks: attacks.join(",") };
	const flags = Object.entries(values).flatMap(([name, value]) => [`--${name}`, String(value)]);
	const child = spawn(process.execPath, [main, ...flags], {
		stdio: ["ignore", "pipe", "inherit"],
	});
	let text = "";
	child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
		text += chunk;
	});
	const [code] = await once(child, "close");
	if (code !== 0) {
		throw new Error(`the attackers ended with ${code}`);
	}
	return Object.fromEntries(
		text
			.trim()
			.split("\n")
			.map((line) => {
				const at = line.indexOf(":");
				return [line.slice(0, at), JSON.parse(line.slice(at + 1))];
			}),
	);
}
