export { EventLog, type EventLogOptions, type EventLogState } from "./event-log.ts";
export { createEventService, type EventReader, type EventServiceOptions } from "./event-service.ts";
export { defaultEventLimits, type EventLimits } from "./own-events.ts";
