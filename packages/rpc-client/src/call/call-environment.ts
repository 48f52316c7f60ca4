import type { Clock, Deadlines } from "@plinth/runtime";
import type { MessageOptions } from "../framing/message-options.ts";
import type { Connection } from "../session/connection.ts";
import type { RequestHead } from "./request-head.ts";
/** The parts that all calls of a transport share. */
export interface CallEnvironment {
	readonly connection: Pick<Connection, "current" | "ready">;
	readonly deadlines: Deadlines;
	readonly head: RequestHead;
	readonly messages: MessageOptions;
	readonly clock: Clock;
}
