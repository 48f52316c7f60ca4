import { describe, expect, it } from "vitest";
import { Session } from "./session.ts";

function storeOf(items: Record<string, string> = {}) {
	const stored = new Map(Object.entries(items));
	return {
		stored,
		getItem: (key: string) => stored.get(key) ?? null,
		setItem: (key: string, value: string) => void stored.set(key, value),
		removeItem: (key: string) => void stored.delete(key),
	};
}

describe("Session", () => {
	it("is open when the server accepts a call without a token", () => {
		const store = storeOf();
		const session = new Session(store);
		expect(session.state.kind).toBe("unknown");
		session.accepted();
		expect(session.state.kind).toBe("open");
		expect(store.stored.size).toBe(0);
	});

	it("keeps a token as long as the tab, and forgets it with the sign-out", () => {
		const store = storeOf();
		new Session(store).signIn("secret");
		const next = new Session(store);
		expect(next.token).toBe("secret");
		next.signOut();
		expect([next.token, next.state.kind, store.stored.size]).toEqual(["", "closed", 0]);
	});

	it("asks for a token without a reason if there was none, and says why if there was one", () => {
		const session = new Session(storeOf());
		session.refused("");
		expect(session.state).toEqual({ kind: "closed", reason: "" });
		session.signIn("old");
		session.refused("old");
		expect(session.state).toMatchObject({ reason: expect.stringContaining("not accept") });
		expect(session.token).toBe("");
	});

	it("is not closed by a call that was made with an earlier token", () => {
		const session = new Session(storeOf());
		session.signIn("old");
		session.signIn("new");
		session.accepted();
		session.refused("old");
		expect([session.token, session.state.kind]).toEqual(["new", "open"]);
	});

	it("notifies its listeners until they leave", () => {
		const session = new Session(storeOf());
		const seen: string[] = [];
		const leave = session.subscribe(() => seen.push(session.state.kind));
		session.accepted();
		session.accepted();
		leave();
		session.signOut();
		expect(seen).toEqual(["open"]);
	});
});
