//! The words that names and values are judged by.

/// Words, with white space between them.
pub(crate) struct Words(&'static str);

impl Words {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static [u8]> {
        self.0.split_ascii_whitespace().map(str::as_bytes)
    }

    /// Whether a word is one of them, whatever the case of its letters is.
    pub(crate) fn has(&self, word: &[u8]) -> bool {
        self.iter().any(|known| known.eq_ignore_ascii_case(word))
    }

    pub(crate) const fn text(&self) -> &'static str {
        self.0
    }
}

/// Ends of names whose value is a password. The words of a name are joined by one `_`.
pub(crate) const PASSWORDS: Words = Words(
    "\
    identified_by secret_key_base shared_secret client_secret consumer_secret seed_phrase recovery_phrase \
    secret_key passcode contraseña kennwort de_passe senha hasło heslo parola \
    salasana lösenord mnemonic api_secret secretkey clientsecret userpass sshpass storepass keypass secret \
    pass pwd pw psk",
);

/// Ends of names whose value is a key or a token.
pub(crate) const TOKENS: Words = Words(
    "\
    connection_string authorization secret_access_key shared_access_key instrumentation_key subscription_key \
    encryption_key recovery_code backup_code credentials credential signing_key account_key license_key \
    private_key private_token service_key access_token refresh_token session_token bearer_token auth_token \
    id_token access_key master_key deploy_key webhook_url incoming_webhook api_token api_key app_key apikey \
    apitoken authkey auth_key accesskey accountkey privatekey authtoken accesstoken token contribsys_com cookie \
    cookies creds cred pat dsn sas jwt",
);

/// Ends of names whose value can be a key.
pub(crate) const WEAK: Words = Words(
    "\
    signature sig auth key otp",
);

/// Ends of names that are about a secret and do not have one, although a name above is their end or their last word but one.
pub(crate) const OTHERS: Words = Words(
    "\
    public_key pub_key primary_key foreign_key partition_key sort_key cache_key hot_key shortcut_key row_key \
    group_key object_key dict_key map_key index_key json_key translation_key i18n_key site_key next_token \
    page_token continuation_token cancellation_token max_token eos_token bos_token pad_token unk_token sep_token \
    cls_token mask_token stop_token syntax_token public_token by_pass idempotency_key publishable_key host_key",
);

/// Names that count also where they are written together with the word before them.
pub(crate) const GLUED: Words = Words(
    "\
    password passwd passphrase passwort wachtwoord пароль Пароль 密码 密碼 パスワード 비밀번호",
);

/// Words behind a name that leave it what it is: `DB_PASSWORD_PROD`, `API_KEY_2`.
pub(crate) const QUALIFIERS: Words = Words(
    "\
    prod production dev development staging stage live old new main default backup value string str primary \
    secondary v1 v2 v3 here plain plaintext b64 base64 raw header",
);

/// Vendors whose keys look like nothing in particular: their name says what a random value is.
pub(crate) const VENDORS: Words = Words(
    "\
    adafruit adobe airtable algolia alibaba aliyun amplitude anthropic asana atlassian auth0 aws azure beamer \
    bintray bitbucket bittrex binance braintree clerk cloudflare cloudinary codecov cohere coinbase confluence \
    confluent contentful contribsys datadog deepseek discord dnkey drone droneci dropbox elastic etsy facebook \
    fastly finicity finnhub firebase flickr freshbooks gitter gocardless grafana heroku hubspot instagram intercom \
    jenkins jfrog artifactory jira kraken kucoin lastfm launchdarkly linear linkedin lob looker mailchimp mailgun \
    mapbox mattermost meraki messagebird mistral mixpanel netlify newrelic nytimes newyorktimes okta openai \
    openweather openweathermap opsgenie pagerduty paypal pinecone plaid privateai pusher rapidapi recaptcha \
    segment sendbird sendgrid sentry shodan sidekiq snyk sonar sonarqube spotify square squarespace steam sumo \
    sumologic supabase telegram telegr tencent travis travisci trello twilio twitch twitter typeform vercel \
    virustotal xray yandex youtube zendesk zoom",
);

/// Words that are written together with the name of a vendor: `discordkey`.
pub(crate) const JOINED_TO_VENDORS: Words = Words(
    "\
    key keys token secret api apikey apitoken auth id bot app access pass",
);

/// What names of secrets contain, wherever it is in them.
pub(crate) const MENTIONS: Words = Words(
    "\
    key token secret password passwd passphrase credential cookie webhook",
);

/// Words that stand in for a secret in examples, where they are a word of their own or the end.
pub(crate) const PLACEHOLDERS: Words = Words(
    "\
    example examples your yours placeholder changeme change replace redacted hidden masked dummy sample insert xxx \
    xxxx xxxxx todo fixme fake removed omitted enter",
);

/// Values that are words about secrets and none themselves.
pub(crate) const NO_VALUES: Words = Words(
    "\
    password passwd passphrase pass pwd secret secrets token tokens key keys apikey api_key api-key string str \
    text hidden true false null none nil undefined optional required invalid missing empty unset default value \
    values username user login auth basic bearer digest test testing number boolean bool int integer object array \
    bytes char varchar any never self this input type name email admin root foo bar baz wrong incorrect correct \
    expired valid unknown enabled disabled encrypted hashed plain plaintext private public and or not the for with \
    from credentials credential cookie header session new old current confirm confirmation reset",
);

/// Words that name a secret: `reset-password` is none.
pub(crate) const ABOUT_SECRETS: Words = Words(
    "\
    password passwd passphrase secret secrets token tokens apikey credentials key keys",
);

/// How words end that a sentence says of a password, or that code gives it.
pub(crate) const ENDINGS_OF_SENTENCES: Words = Words(
    "\
    ed ing able ible ive ory ary ally ent ant ous ful less tion",
);

/// Other such words: of sentences, and names of variables.
pub(crate) const OF_SENTENCES: Words = Words(
    "\
    strong weaker stronger longer shorter always either simply something anything nothing different another \
    between written hidden shown taken chosen broken secure unique random result buffer config options params \
    option variable hash unsafe sensitive available identical complex simple obsolete accurate crypto generated \
    prompt stdin parameter argument attribute function method unicode latin before should cannot within itself \
    whatever sha",
);

/// Words that join a sentence, and those of messages: a passphrase has none of them.
pub(crate) const JOINTS: Words = Words(
    "\
    a an the to of in on at is are be must for and or not no your with enter please here does do from by as it \
    this that least too should new old again same match current forgot reset confirm change invalid wrong required \
    characters chars digits letters min max minimum maximum length version step error code",
);
