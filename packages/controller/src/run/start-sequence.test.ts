import { TestBench } from "../running-manager.fixture.ts";
import { priming } from "../suite/priming.fixture.ts";
import { declareSuite, runOn } from "../suite/scenario.fixture.ts";

declareSuite(priming, (run) => runOn(new TestBench(), run));
