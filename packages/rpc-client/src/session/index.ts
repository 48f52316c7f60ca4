// Connections below the transport, for programs that pass calls on without decoding them.
export { Connection, type ConnectionSettings } from "./connection.ts";
export { Session } from "./session.ts";
