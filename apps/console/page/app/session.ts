/** Where a session is stored: `sessionStorage`, or the like. */
export type SessionStore = Pick<Storage, "getItem" | "setItem" | "removeItem">;

/** Whether somebody is signed in. */
export type SessionState =
	/** Not known yet whether the server needs a token. */
	| { readonly kind: "unknown" }
	/** The server accepts the calls of the session. */
	| { readonly kind: "open" }
	/** The server needs a token, or another one. `reason` says why, for people. */
	| { readonly kind: "closed"; readonly reason: string };

const tokenKey = "plinth.token";

/**
 * The token of a user. It is kept in memory and in the store, which lasts as long as the tab; it is in no URL, in no log,
 * and in no storage that other tabs or later sessions could read.
 */
export class Session {
	#token: string;
	#state: SessionState = { kind: "unknown" };
	readonly #store: SessionStore;
	readonly #listeners = new Set<() => void>();

	constructor(store: SessionStore) {
		this.#store = store;
		this.#token = store.getItem(tokenKey) ?? "";
	}

	/** Empty without a token. */
	get token(): string {
		return this.#token;
	}

	get state(): SessionState {
		return this.#state;
	}

	/** Uses a token from now on. Whether the server accepts it is not known yet. */
	signIn(token: string): void {
		this.#token = token;
		this.#store.setItem(tokenKey, token);
		this.#set({ kind: "unknown" });
	}

	/** Forgets the token. */
	signOut(reason = ""): void {
		this.#token = "";
		this.#store.removeItem(tokenKey);
		this.#set({ kind: "closed", reason });
	}

	/** The server has accepted a call. */
	accepted(): void {
		if (this.#state.kind === "unknown") {
			this.#set({ kind: "open" });
		}
	}

	/** The server did not accept a call with this token. Does nothing if another one is used by now. */
	refused(token: string): void {
		if (token !== this.#token || this.#state.kind === "closed") {
			return;
		}
		this.signOut(token === "" ? "" : "The server does not accept this token, or not any more.");
	}

	/** Calls the listener when the state changes, until the returned function is called. */
	readonly subscribe = (listener: () => void): (() => void) => {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	};

	#set(state: SessionState): void {
		this.#state = state;
		for (const listener of [...this.#listeners]) {
			listener();
		}
	}
}
