/** The width that a line of a generated file may have. */
const maxWidth = 100;

/** The imports of a generated file. */
export class Imports {
	readonly #names = new Map<string, Set<string>>();
	readonly #types = new Map<string, Set<string>>();

	/** Adds a value, under another name if `alias` differs from it. */
	add(from: string, name: string, alias = name): void {
		add(this.#names, from, name, alias);
	}

	/** Adds a type. */
	addType(from: string, name: string, alias = name): void {
		add(this.#types, from, name, alias);
	}

	/** The text of all: packages first, then files, each in the order of their paths. */
	toString(): string {
		const paths = [...new Set([...this.#names.keys(), ...this.#types.keys()])].sort(byPath);
		return paths.map((from) => `${this.#textOf(from)}\n`).join("");
	}

	#textOf(from: string): string {
		const names = [...(this.#names.get(from) ?? [])];
		const types = [...(this.#types.get(from) ?? [])];
		const onlyTypes = names.length === 0;
		const items = onlyTypes ? types : [...names, ...types.map((each) => `type ${each}`)];
		items.sort(byName);
		const start = `import ${onlyTypes ? "type " : ""}`;
		const line = `${start}{ ${items.join(", ")} } from "${from}";`;
		return line.length <= maxWidth
			? line
			: `${start}{\n${items.map((each) => `\t${each},\n`).join("")}} from "${from}";`;
	}
}

function add(map: Map<string, Set<string>>, from: string, name: string, alias: string): void {
	const names = map.get(from) ?? new Set();
	names.add(name === alias ? name : `${name} as ${alias}`);
	map.set(from, names);
}

/** Node's own modules, packages, then files: those of other folders before those of the same one. */
function byPath(a: string, b: string): number {
	return rank(a) - rank(b) || (a < b ? -1 : 1);
}

function rank(path: string): number {
	const starts = ["node:", "@", "../", "./"];
	const found = starts.findIndex((start) => path.startsWith(start));
	return found < 0 ? 1.5 : found;
}

function byName(a: string, b: string): number {
	const plain = (name: string) => name.replace(/^type /, "").toLowerCase();
	return plain(a) < plain(b) ? -1 : 1;
}
