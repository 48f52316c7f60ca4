import { describe, expect, it } from "vitest";
import type { ScannedEvent } from "./scanned-message.ts";
import { WatchPosition } from "./watch-position.ts";

function change(change: string, version = ""): ScannedEvent {
	return { kind: "change", change, version, shows: version };
}

const other = (kind: ScannedEvent["kind"], version = ""): ScannedEvent => ({
	...{ kind, version },
	change: "",
	shows: version,
});

describe("the position of a watch", () => {
	it("is that of its request until it has a newer one", () => {
		expect(new WatchPosition("").continuation).toEqual({ kind: "from-the-beginning" });
		const position = new WatchPosition("5");
		expect(position.continuation).toEqual({ kind: "after", version: "5" });
		position.decide(change("a@6"));
		expect(position.continuation).toEqual({ kind: "after", version: "5" });
		position.decide(change("b@6", "6"));
		expect(position.continuation).toEqual({ kind: "after", version: "6" });
	});

	it("is nowhere within a snapshot", () => {
		const position = new WatchPosition("");
		position.decide(change("a@1"));
		expect(position.continuation).toEqual({ kind: "in-snapshot" });
		position.decide(other("end-of-snapshot", "5"));
		expect(position.continuation).toEqual({ kind: "after", version: "5" });
	});

	it("leaves out what comes again, and bookmarks until all of it has come", () => {
		const position = new WatchPosition("5");
		const decide = (...events: ScannedEvent[]) => events.map((event) => position.decide(event));
		expect(decide(change("a@7"), change("b@7"))).toEqual(["pass", "pass"]);
		position.continued();
		expect(decide(other("bookmark", "6"), change("a@7"))).toEqual(["skip", "skip"]);
		expect(position.continuation).toEqual({ kind: "after", version: "5" });
		// Cut off once more, before all has come.
		position.continued();
		expect(decide(change("a@7"), change("b@7"), change("c@7"))).toEqual(["skip", "skip", "pass"]);
		expect(decide(change("d@7", "7"), other("bookmark", "9"))).toEqual(["pass", "pass"]);
		position.continued();
		expect(decide(change("a@7"))).toEqual(["pass"]);
	});

	describe("after a move, when the caller may no longer see a change", () => {
		const upsert = (name: string, version: string, end = ""): ScannedEvent => ({
			...{ kind: "change", change: `upsert ${name}@${version}`, version: end, shows: version },
		});

		it.each([
			["a later revision", [upsert("z", "9", "9")], "9"],
			["a later bookmark", [other("bookmark", "9")], "9"],
			["the rest of the revision", [upsert("c", "7", "7")], "7"],
			["another change of the revision", [upsert("a", "7", "7")], "7"],
		] as const)("leaves out bookmarks until %s", (_name, [event], version) => {
			const position = new WatchPosition("5");
			for (const passed of [upsert("a", "7"), change("delete b@4"), upsert("d", "7")]) {
				expect(position.decide(passed)).toBe("pass");
			}
			position.continued();
			// A server that lags behind, and shows more of what came before.
			expect(position.decide(upsert("y", "6", "6"))).toBe("pass");
			expect(position.decide(other("bookmark", "6"))).toBe("skip");
			position.decide(event);
			expect(position.continuation).toEqual({ kind: "after", version });
			expect(position.decide(other("bookmark", "10"))).toBe("pass");
			position.continued();
			expect(position.decide(other("bookmark", "11"))).toBe("pass");
		});

		it("takes no version of the snapshot for that of a later revision", () => {
			const position = new WatchPosition("");
			position.decide(upsert("a", "3"));
			position.decide(other("end-of-snapshot", "5"));
			position.decide(change("delete a@3"));
			position.continued();
			expect(position.decide(upsert("y", "6", "6"))).toBe("pass");
			expect(position.decide(other("bookmark", "6"))).toBe("skip");
			expect(position.decide(change("delete a@3", "7"))).toBe("skip");
			expect(position.decide(other("bookmark", "7"))).toBe("pass");
		});

		it("learns the version of a revision of deletions from its end", () => {
			const position = new WatchPosition("5");
			position.decide(change("delete a@3"));
			position.decide(change("delete b@4"));
			position.continued();
			expect(position.decide(change("delete z@2", "6"))).toBe("pass");
			expect(position.decide(other("bookmark", "6"))).toBe("skip");
			expect(position.decide(change("delete b@4"))).toBe("skip");
			expect(position.decide(other("bookmark", "6"))).toBe("skip");
			expect(position.decide(change("delete c@4", "7"))).toBe("pass");
			expect(position.decide(other("bookmark", "8"))).toBe("pass");
		});
	});

	it("takes the version of a change that was passed on without it", () => {
		const position = new WatchPosition("5");
		position.decide(change("a@7"));
		position.continued();
		expect(position.decide(change("a@7", "7"))).toBe("skip");
		expect(position.continuation).toEqual({ kind: "after", version: "7" });
	});

	it("is not known after what can't be read, until the next version", () => {
		for (const event of [other("unknown"), undefined]) {
			const position = new WatchPosition("5");
			expect(event ? position.decide(event) : position.decideUnread()).toBe("pass");
			expect(position.continuation).toEqual({ kind: "unknown" });
			position.decide(change("a@8", "8"));
			expect(position.continuation).toEqual({ kind: "after", version: "8" });
			position.decide(change("b@9"));
			position.continued();
			expect(event ? position.decide(event) : position.decideUnread()).toBe("lost");
		}
	});

	it("is not known in a revision that is too large to be remembered", () => {
		const position = new WatchPosition("5");
		for (let count = 0; count < 1_025; count += 1) {
			expect(position.decide(change(`n${count}@6`))).toBe("pass");
		}
		expect(position.continuation).toEqual({ kind: "unknown" });
		position.decide(change("last@6", "6"));
		expect(position.continuation).toEqual({ kind: "after", version: "6" });
	});
});
