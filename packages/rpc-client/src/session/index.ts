// Connections below the transport, for programs that pass calls on without decoding them.
export { Connection, type ConnectionSettings } from "./connection.ts";
export { isExcluded, type Session } from "./session.ts";
