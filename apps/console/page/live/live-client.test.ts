import { beforeEach, describe, expect, it } from "vitest";
import { Session } from "../app/session.ts";
import { defaultOrder } from "../table/row-order.ts";
import { LiveClient } from "./live-client.ts";
import type { SentRow, ToTab, ToWorker, ViewRequest, ViewUpdate } from "./view.ts";

const table: Extract<ViewRequest, { kind: "table" }> = {
	...{ kind: "table", typeKey: "demo.v1.Artist", namePrefix: "" },
	tenancy: { partition: "*", namespace: "*" },
	...{ order: defaultOrder, filter: "", start: 0, count: 80 },
};

const rows: Omit<ViewUpdate, "view"> = {
	state: { phase: "loading" },
	content: {
		...{ kind: "table", start: 0, ids: [1], matching: 1, total: 1 },
		rows: [{ id: 1, name: "a" } as SentRow],
	},
};

describe("a table that was opened early", () => {
	let sent: ToWorker[];
	let receive: (message: ToTab) => void;
	let frames: (() => void)[];
	let client: LiveClient;

	beforeEach(() => {
		sent = [];
		frames = [];
		client = new LiveClient({
			port: {
				post: (message) => sent.push(message),
				listen: (listener) => {
					receive = listener;
				},
			},
			serverUrl: "http://test",
			session: new Session({ getItem: () => null, setItem: () => {}, removeItem: () => {} }),
			isVisible: () => true,
			requestFrame: (callback) => frames.push(callback),
		});
		client.openEarly(table);
		sent = [];
	});

	/** What an observer was told. */
	function open(request: ViewRequest) {
		const updates: object[] = [];
		return { updates, ...client.open(request, { onUpdate: (update) => updates.push(update) }) };
	}

	function paint(): void {
		for (const frame of frames.splice(0)) {
			frame();
		}
	}

	it("has its first rows when it is shown, and the worker goes on after that", () => {
		receive({ kind: "frame", updates: [{ view: 1, ...rows }] });
		paint();
		expect(sent).toEqual([]);
		const { updates, close } = open({ ...table, count: 40 });
		expect(updates).toEqual([rows]);
		expect(sent).toEqual([]);
		paint();
		expect(sent).toEqual([{ kind: "ready" }]);
		receive({ kind: "frame", updates: [{ view: 1, state: { phase: "live" } }] });
		expect(updates).toHaveLength(2);
		close();
		expect(sent.at(-1)).toEqual({ kind: "close", view: 1 });
	});

	it("is closed when another view is opened, of which the worker hears", () => {
		receive({ kind: "frame", updates: [{ view: 1, ...rows }] });
		const request = { ...table, namePrefix: "a" };
		const { updates } = open(request);
		expect(updates).toEqual([]);
		expect(sent).toEqual([
			{ kind: "close", view: 1 },
			{ kind: "open", view: 2, request },
		]);
		paint();
		expect(sent.at(-1)).toEqual({ kind: "ready" });
	});

	it("is taken once", () => {
		open(table);
		open(table);
		expect(sent).toEqual([{ kind: "open", view: 2, request: table }]);
	});
});
