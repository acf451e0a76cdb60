// Package suite is one set of HTTP tests for a deployed agent, whatever host it runs on. [Run] talks to a [Target], which
// serves the fixture workshop of test/agents; all it knows of the host is what an HTTP client can see.
//
// # Known faults of durable agents
//
// What users have met elsewhere, by the numbers of our collection, and the tests that keep it away. Tests of this package
// run as TestInProcess/NAME and TestShipped/NAME of test/e2e and are given as suite NAME.
//
//	 1  an accepted follow-up never runs after a restart         test/e2e TestRestart, also on a copy of the state elsewhere
//	 2  a turn cut by a kill runs for ever                       test/crash TestKillAtEveryWrite; engine TestDeathAtEveryWrite; test/e2e TestKill
//	 3  an upgrade breaks old sessions                           sqlitesession TestFilesOfEveryVersionAreUnderstood; localhost TestStateOfTheFirstVersion
//	 4  a turn costs more the longer the session                 engine TestTurnReadsSnapshotAndTailOnly; test/bench
//	 5  recovery exists, but not in what users start             test/e2e TestRestart, TestKill
//	 6  turns seem to run though nobody runs them                localturn TestTurnsOfDeadProcessesAreTakenOver; localhost TestTurnsOfAKilledHostMove
//	 9  a turn delivered twice runs twice                        engine TestConcurrentStepsRunTheTurnOnce; turntest; suite ManyRequestsWithOneKey
//	10  a long tool loses its lease and runs twice               localturn TestLeaseIsRenewedWhileATurnRuns
//	12  a step that goes on runs its finished calls again        engine TestDeathAtEveryWrite; test/e2e TestKill; with approvals: waits for them
//	13  an effect without a record is run again in silence       test/crash TestKillAtEveryWrite; test/e2e TestKill
//	15  positions in a stream repeat                             test/e2e TestBurst; httpapi TestReconnectAtEveryIndex; suite ReconnectAtEveryIndex
//	16  a second reader sees less than the first                 httpapi TestLiveAndReplayAgree; suite StreamReplaysThenFollows; with subagents: waits for them
//	19  a silent stream is cut and events are lost               suite ReconnectThroughAProxy; httpapi TestHeartbeat
//	21  a reader that leaves takes the tool with it              suite ReaderGoesAway
//	40  compaction overlooks instructions and tools              engine TestCompaction
//	41  compaction is told as done and shrinks nothing           engine TestCompaction
//	42  large outputs lose their tail or flood the model         engine TestLargeOutputsAreShortenedForTheModelOnly; suite LargeOutputs
//	43  malformed arguments crash the turn or reach the tool     engine TestMalformedArgumentsBecomeErrorResults; suite MalformedCalls
//	44  characters are cut in two                                engine TestDeltasAddUpAtEveryCut; suite WholeCharacters
//	48  parallel calls and sessions race                         engine TestManyParallelCallsAreRecordedOnce; test/e2e TestManyClients; all with -race; two subagents: waits for them
//	49  a stop leaves the model running, and billing             test/e2e TestStopEndsTheProvidersRequest; suite StopDuringAnAnswer
//	50  a stop is ignored by what does not listen                engine TestStopDoesNotWaitForTheProvider; suite StopOfADeafTool
//	53  who knows a session's id may use it                      suite SessionsBelongToTheirUser; httpapi TestEveryRouteChecksItsCaller
//	54  a route forgets to ask who is calling                    suite EveryRouteNeedsACaller, over the table of routes
//	61  an agent runs away                                       engine TestLimitsEndTheTurnAndNameThemselves, TestTurnTimeEndsTheTurn; suite Runaway; a stop by an administrator: waits for that role
//
//	34  replicas fire a tick each, or lose it while down         schedule TestThreeProcessesOneStore, TestCatchesUpOnce; test/e2e TestSchedulesInDevelopment
//	35  a deployment moves what a schedule calls                 infra TestCrons, TestSameTwice
//	36  a schedule is not registered, in silence                 project TestSchedules; suite Schedules; cli TestScripts/validate
//
// Waiting for what they are about: 8 (retention), 18 (the playground), 23 to 32 (approvals), 38 and 64
// (channels), 58 (connections), 60 (sandboxes), 63 (evals).
package suite
