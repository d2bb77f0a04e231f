// What was asked and answered in a request, and what its client says of the answer, for roles that may read it.

import type { FeedbackList } from "../../../admin/feedback.ts";
import type { Recording, RecordingList } from "../../../admin/recording-schemas.ts";
import { useApp } from "../app/context.ts";
import { useResource } from "../app/resource.ts";
import { words } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { Link } from "../parts/link.tsx";
import { Notice, Trouble } from "../parts/notice.tsx";
import { Said } from "../parts/said.tsx";

const PATH = "admin/recordings";

export function RecordingCards({ id }: { id: string }) {
  const { may } = useApp().session;
  return may({ method: "GET", path: PATH }) ? <Cards id={id} /> : null;
}

function Cards({ id }: { id: string }) {
  const named = encodeURIComponent(id);
  const list = useResource<RecordingList>(`${PATH}?id=${named}`);
  const recording = useResource<Recording>(() =>
    list.data.value?.recordings.length === 1 ? `${PATH}/${named}` : undefined,
  );
  const rated = useResource<FeedbackList>(`admin/feedback?request=${named}`);
  const { value: told } = recording.data;
  const [feedback] = rated.data.value?.feedback ?? [];
  return (
    <>
      <Trouble of={[list, recording, rated]} />
      {feedback !== undefined && (
        <Card title="Feedback">
          <p>
            Score {feedback.score}
            {feedback.comment !== null && (
              <>
                : <q>{feedback.comment}</q>
              </>
            )}
          </p>
          {feedback.metadata !== null && <pre>{JSON.stringify(feedback.metadata, null, 2)}</pre>}
        </Card>
      )}
      {told !== undefined && <Conversation {...told} />}
    </>
  );
}

function Conversation({ id, conversation, request, answer }: Recording) {
  const cuts = [request, answer].flatMap(({ incomplete }) => incomplete ?? []);
  const { messages = [], tools = [], answer: said } = conversation ?? {};
  return (
    <Card
      title="Conversation"
      aside={
        conversation !== null && (
          <Link to="replays" query={{ id }}>
            Replay
          </Link>
        )
      }
    >
      {cuts.length > 0 && <Notice tone="warn">Not all of it was kept: {cuts.map(words).join(", ")}.</Notice>}
      {tools.length > 0 && <p class="faint">Tools: {tools.join(", ")}</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled by the keyboard, too */}
      <div class="talk" tabIndex={0} role="log" aria-label="Conversation">
        {messages.map((message, index) => (
          <Said key={index} by={message.role} parts={message.parts} />
        ))}
        {said && <Said by="assistant" parts={said.parts} />}
        {conversation === null && [request, answer].map(({ text }, index) => <pre key={index}>{text}</pre>)}
      </div>
      {said?.error && <Notice tone="bad">{said.error}</Notice>}
    </Card>
  );
}
