import type { Behavior } from "./behavior.fixture.ts";
import { callerInterceptorBehaviors } from "./caller-interceptors.fixture.ts";
import { cancellationBehaviors } from "./cancellation.fixture.ts";
import { deadlineBehaviors, shutdownBehaviors } from "./deadlines.fixture.ts";
import { errorBehaviors } from "./errors.fixture.ts";
import { headerBehaviors } from "./headers.fixture.ts";
import { leavingBehaviors } from "./leaving.fixture.ts";
import { serverInterceptorBehaviors } from "./server-interceptors.fixture.ts";
import { serverStreamBehaviors } from "./server-streams.fixture.ts";
import { streamCancellationBehaviors } from "./stream-cancellation.fixture.ts";
import { unaryBehaviors } from "./unary.fixture.ts";

/** The whole suite, by topic. */
export const behaviors: Readonly<Record<string, readonly Behavior[]>> = {
	"Unary calls": unaryBehaviors,
	"Headers and trailers": headerBehaviors,
	Errors: errorBehaviors,
	Cancellation: cancellationBehaviors,
	"Cancellation of streams": streamCancellationBehaviors,
	"Leaving a stream": leavingBehaviors,
	Deadlines: deadlineBehaviors,
	Shutdown: shutdownBehaviors,
	"Interceptors of the caller": callerInterceptorBehaviors,
	"Interceptors of the server": serverInterceptorBehaviors,
	"Server streaming": serverStreamBehaviors,
};
