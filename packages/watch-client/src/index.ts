export type { WatchClock, WatchTimer } from "./clock.ts";
export {
	type ConnectionState,
	type Watch,
	WatchClient,
	type WatchClientOptions,
	type WatchQuery,
} from "./watch-client.ts";
export type { ResourceChange, WatchUpdate } from "./watch-update.ts";
