// Written by scripts/client-types.ts from docs/releases/contracts/gateway.json. Do not edit.

/** What is sold: what each operation takes, and what it answers. */
export interface Operations {
  /** Financial metrics of a company as they are now. */
  financial_metrics_snapshot: {
    input: { cik?: string; ticker?: string; [name: string]: QueryValue }
    answer: {
      snapshot: {
        asset_turnover?: number | null
        book_value_growth?: number | null
        book_value_per_share?: number | null
        cash_ratio?: number | null
        current_ratio?: number | null
        days_sales_outstanding?: number | null
        debt_to_assets?: number | null
        debt_to_equity?: number | null
        earnings_growth?: number | null
        earnings_per_share?: number | null
        earnings_per_share_growth?: number | null
        ebitda_growth?: number | null
        enterprise_value?: number | null
        enterprise_value_to_ebitda_ratio?: number | null
        enterprise_value_to_revenue_ratio?: number | null
        free_cash_flow_growth?: number | null
        free_cash_flow_per_share?: number | null
        free_cash_flow_yield?: number | null
        gross_margin?: number | null
        interest_coverage?: number | null
        inventory_turnover?: number | null
        market_cap?: number | null
        net_margin?: number | null
        operating_cash_flow_ratio?: number | null
        operating_cycle?: number | null
        operating_income_growth?: number | null
        operating_margin?: number | null
        payout_ratio?: number | null
        peg_ratio?: number | null
        price_to_book_ratio?: number | null
        price_to_earnings_ratio?: number | null
        price_to_sales_ratio?: number | null
        quick_ratio?: number | null
        receivables_turnover?: number | null
        return_on_assets?: number | null
        return_on_equity?: number | null
        return_on_invested_capital?: number | null
        revenue_growth?: number | null
        ticker: string
        working_capital_turnover?: number | null
        [name: string]: unknown
      }
      [name: string]: unknown
    }
  }
  /** The stories that a user shows at the moment. */
  user_stories: {
    input: { [name: string]: QueryValue }
    answer: {
      cache_message: string | null
      cache_message_zh: string | null
      cache_url: string
      code: number
      data: unknown
      docs: string
      message: string
      message_zh: string
      params: {
        [name: string]: unknown
      }
      request_id: string
      router: string
      support: string
      time: string
      time_stamp: number
      time_zone: string
      [name: string]: unknown
    }
  }
  /** Videos of creators that match what people search for. */
  creator_search_insights_videos: {
    input: { keyword?: string; [name: string]: QueryValue }
    answer: {
      cache_message: string | null
      cache_message_zh: string | null
      cache_url: string
      code: number
      data: unknown
      docs: string
      message: string
      message_zh: string
      params: {
        [name: string]: unknown
      }
      request_id: string
      router: string
      support: string
      time: string
      time_stamp: number
      time_zone: string
      [name: string]: unknown
    }
  }
  /** Words that shoppers are offered while they type. */
  search_word_suggestion: {
    input: { search_word?: string; [name: string]: QueryValue }
    answer: {
      cache_message: string | null
      cache_message_zh: string | null
      cache_url: string
      code: number
      data: unknown
      docs: string
      message: string
      message_zh: string
      params: {
        [name: string]: unknown
      }
      request_id: string
      router: string
      support: string
      time: string
      time_stamp: number
      time_zone: string
      [name: string]: unknown
    }
  }
  /** What is known of a tag: its title and how often it is used. */
  tag_detail: {
    input: { tag_name?: string; [name: string]: QueryValue }
    answer: {
      cache_message: string | null
      cache_message_zh: string | null
      cache_url: string
      code: number
      data: unknown
      docs: string
      message: string
      message_zh: string
      params: {
        [name: string]: unknown
      }
      request_id: string
      router: string
      support: string
      time: string
      time_stamp: number
      time_zone: string
      [name: string]: unknown
    }
  }
  /** Have a model make a video, as a task that takes minutes. */
  video_synthesis: {
    input: VideoSynthesisRequest
    answer: {
      output: {
        task_id: string
        task_status: 'PENDING' | 'RUNNING'
        [name: string]: unknown
      }
      request_id: string
      [name: string]: unknown
    }
  }
  /** Follow a user, for the user who linked an account to the key. */
  follow_user: { input: FollowUserRequest; answer: ProviderBody }
  /** Posts that quote a post, a page at a time. */
  tweet_quotes: {
    input: { cursor?: string; tweetId: string; [name: string]: QueryValue }
    answer: {
      has_next_page: boolean
      message: string
      next_cursor: string
      status: string
      tweets: {
        author?: {
          automatedBy?: string | null
          canDm?: boolean | null
          coverPicture?: string | null
          createdAt?: string | null
          description?: string | null
          favouritesCount?: number | null
          followers?: number | null
          following?: number | null
          hasCustomTimelines?: boolean | null
          id?: string | null
          isAutomated?: boolean | null
          isBlueVerified?: boolean | null
          isTranslator?: boolean | null
          location?: string | null
          mediaCount?: number | null
          message?: string | null
          name?: string | null
          pinnedTweetIds?: string[] | null
          possiblySensitive?: boolean | null
          profilePicture?: string | null
          statusesCount?: number | null
          type?: string | null
          unavailable?: boolean | null
          unavailableReason?: string | null
          url?: string | null
          userName?: string | null
          verifiedType?: string | null
          withheldInCountries?: string[] | null
          [name: string]: unknown
        } | null
        bookmarkCount?: number | null
        conversationId?: string | null
        createdAt?: string | null
        displayTextRange?: number[] | null
        entities?: {
          hashtags?:
            | {
                indices?: number[] | null
                text?: string | null
                [name: string]: unknown
              }[]
            | null
          urls?:
            | {
                display_url?: string | null
                expanded_url?: string | null
                indices?: number[] | null
                url?: string | null
                [name: string]: unknown
              }[]
            | null
          user_mentions?:
            | {
                id_str?: string | null
                name?: string | null
                screen_name?: string | null
                [name: string]: unknown
              }[]
            | null
          [name: string]: unknown
        } | null
        id: string
        inReplyToId?: string | null
        inReplyToUserId?: string | null
        inReplyToUsername?: string | null
        isLimitedReply?: boolean | null
        isReply?: boolean | null
        lang?: string | null
        likeCount?: number | null
        quoteCount?: number | null
        /** A text by the specification of this gateway. The provider sends a tweet record as an object, or null. */
        quoted_tweet?:
          | string
          | {
              [name: string]: unknown
            }
          | null
        replyCount?: number | null
        retweetCount?: number | null
        /** A text by the specification of this gateway. The provider sends a tweet record as an object, or null. */
        retweeted_tweet?:
          | string
          | {
              [name: string]: unknown
            }
          | null
        source?: string | null
        text: string
        type?: string | null
        url?: string | null
        viewCount?: number | null
        [name: string]: unknown
      }[]
      [name: string]: unknown
    }
  }
  /** Top-level comments of a post or reel. */
  post_comments: {
    input: { url?: string; [name: string]: QueryValue }
    answer: {
      comments: {
        child_comment_count: number
        comment_like_count: number
        created_at: string
        id: string
        text: string
        user: {
          fbid_v2: string
          id: string
          is_unpublished: unknown
          is_verified: boolean
          pk: string
          profile_pic_url: string
          username: string
          [name: string]: unknown
        }
        [name: string]: unknown
      }[]
      credits_remaining: number
      cursor: string
      success: boolean
      [name: string]: unknown
    }
  }
  /** Visits of a website and what its visitors do, by month. */
  website_traffic_engagement: {
    input: { end_date?: string; metrics?: string; start_date?: string; [name: string]: QueryValue }
    answer: {
      [name: string]: unknown
    }
  }
  /** Let a model continue a conversation, in the OpenAI protocol. */
  chat_completions: {
    input: ChatCompletionsRequest & { stream?: false | null }
    answer: {
      choices?:
        | {
            finish_reason?: string | null
            index?: number | null
            message?: {
              content?: string | unknown[] | null
              reasoning_content?: string | null
              refusal?: string | null
              role?: string | null
              tool_calls?:
                | {
                    function?: {
                      arguments?: string | null
                      name?: string | null
                      [name: string]: unknown
                    } | null
                    id?: string | null
                    type?: string | null
                    [name: string]: unknown
                  }[]
                | null
              [name: string]: unknown
            } | null
            [name: string]: unknown
          }[]
        | null
      created?: number | null
      id?: string | null
      /** As it was asked for. */
      model?: string
      object?: string | null
      service_tier?: string | null
      usage?: {
        completion_tokens?: number | null
        completion_tokens_details?: {
          audio_tokens?: number | null
          reasoning_tokens?: number | null
          [name: string]: unknown
        } | null
        /** What the call was charged, in decimal USD. Written by the gateway. */
        cost_usd?: string
        prompt_tokens?: number | null
        prompt_tokens_details?: {
          audio_tokens?: number | null
          cache_write_tokens?: number | null
          cached_tokens?: number | null
          [name: string]: unknown
        } | null
        total_tokens?: number | null
        [name: string]: unknown
      } | null
      [name: string]: unknown
    }
  }
  /** Search the web in depth and write up what was found. */
  deep_research: { input: DeepResearchRequest; answer: ProviderBody }
  /** Turn texts into vectors, in the OpenAI protocol. */
  embeddings: {
    input: EmbeddingsRequest
    answer: {
      data?:
        | {
            embedding?: number[] | string
            index?: number | null
            [name: string]: unknown
          }[]
        | null
      /** As it was asked for. */
      model?: string
      object?: string | null
      usage?: {
        /** What the call was charged, in decimal USD. Written by the gateway. */
        cost_usd?: string
        prompt_tokens?: number | null
        total_tokens?: number | null
        [name: string]: unknown
      } | null
      [name: string]: unknown
    }
  }
  /** Make pictures from a description, in the OpenAI protocol. */
  image_generations: {
    input: ImageGenerationsRequest
    answer: {
      created?: number | null
      data?:
        | {
            b64_json?: string | null
            revised_prompt?: string | null
            url?: string | null
            [name: string]: unknown
          }[]
        | null
      usage?: {
        /** What the call was charged, in decimal USD. Written by the gateway. */
        cost_usd?: string
        input_tokens?: number | null
        output_tokens?: number | null
        total_tokens?: number | null
        [name: string]: unknown
      } | null
      [name: string]: unknown
    }
  }
  /** Let a model continue a conversation, in the Anthropic protocol. */
  messages: {
    input: MessagesRequest & { stream?: false | null }
    answer: {
      content?:
        | {
            id?: string | null
            input?: unknown
            name?: string | null
            text?: string | null
            thinking?: string | null
            type?: string | null
            [name: string]: unknown
          }[]
        | null
      id?: string | null
      /** As it was asked for. */
      model?: string
      role?: string | null
      stop_reason?: string | null
      stop_sequence?: string | null
      type?: string | null
      usage?: {
        cache_creation?: {
          ephemeral_1h_input_tokens?: number | null
          ephemeral_5m_input_tokens?: number | null
          [name: string]: unknown
        } | null
        cache_creation_input_tokens?: number | null
        cache_read_input_tokens?: number | null
        /** What the call was charged, in decimal USD. Written by the gateway. */
        cost_usd?: string
        input_tokens?: number | null
        output_tokens?: number | null
        server_tool_use?: {
          web_fetch_requests?: number | null
          web_search_requests?: number | null
          [name: string]: unknown
        } | null
        service_tier?: string | null
        [name: string]: unknown
      } | null
      [name: string]: unknown
    }
  }
  /** Count the tokens that a conversation has for a model, in the Anthropic protocol. */
  messages_count_tokens: { input: MessagesCountTokensRequest; answer: MessagesCountTokensAnswer }
  /** Reorder documents by relevance to a query. */
  rerank: {
    input: RerankRequest
    answer: {
      model: string
      results: {
        document: {
          text: string
        }
        index: number
        relevance_score: number
      }[]
      usage: {
        total_tokens: number
      }
    }
  }
  /** Let a model continue a conversation, in the protocol of OpenAI's Responses. */
  responses: {
    input: ResponsesRequest & { stream?: false | null }
    answer: {
      created_at?: number | null
      id?: string | null
      /** As it was asked for. */
      model?: string
      object?: string | null
      output?:
        | {
            arguments?: string | null
            content?:
              | {
                  text?: string | null
                  type?: string | null
                  [name: string]: unknown
                }[]
              | null
            id?: string | null
            name?: string | null
            role?: string | null
            summary?:
              | {
                  text?: string | null
                  type?: string | null
                  [name: string]: unknown
                }[]
              | null
            type?: string | null
            [name: string]: unknown
          }[]
        | null
      service_tier?: string | null
      status?: string | null
      usage?: {
        /** What the call was charged, in decimal USD. Written by the gateway. */
        cost_usd?: string
        input_tokens?: number | null
        input_tokens_details?: {
          cached_tokens?: number | null
          [name: string]: unknown
        } | null
        output_tokens?: number | null
        output_tokens_details?: {
          reasoning_tokens?: number | null
          [name: string]: unknown
        } | null
        total_tokens?: number | null
        [name: string]: unknown
      } | null
      [name: string]: unknown
    }
  }
  /** Turn several texts into vectors, in the Gemini protocol. */
  batch_embed_contents: {
    input: { model: string } & BatchEmbedContentsRequest
    answer: {
      embeddings?: {
        values?: number[]
        [name: string]: unknown
      }[]
      usageMetadata?: {
        /** What the call was charged, in decimal USD. Written by the gateway. */
        cost_usd?: string
        promptTokenCount?: number | null
        totalTokenCount?: number | null
        [name: string]: unknown
      } | null
      [name: string]: unknown
    }
  }
  /** Count the tokens that a conversation has for a model, in the Gemini protocol. */
  generate_content_count_tokens: {
    input: { model: string } & GenerateContentCountTokensRequest
    answer: GenerateContentCountTokensAnswer
  }
  /** Turn a text into a vector, in the Gemini protocol. */
  embed_content: {
    input: { model: string } & EmbedContentRequest
    answer: {
      embedding?: {
        values?: number[]
        [name: string]: unknown
      }
      usageMetadata?: {
        /** What the call was charged, in decimal USD. Written by the gateway. */
        cost_usd?: string
        promptTokenCount?: number | null
        totalTokenCount?: number | null
        [name: string]: unknown
      } | null
      [name: string]: unknown
    }
  }
  /** Let a model continue a conversation, in the Gemini protocol. */
  generate_content: {
    input: { model: string } & GenerateContentRequest
    answer: {
      candidates?:
        | {
            content?: {
              parts?:
                | {
                    functionCall?: {
                      args?: unknown
                      name?: string | null
                      [name: string]: unknown
                    } | null
                    inlineData?: {
                      data?: string | null
                      mimeType?: string | null
                      [name: string]: unknown
                    } | null
                    text?: string | null
                    thought?: boolean | null
                    [name: string]: unknown
                  }[]
                | null
              role?: string | null
              [name: string]: unknown
            } | null
            finishReason?: string | null
            index?: number | null
            [name: string]: unknown
          }[]
        | null
      modelVersion?: string | null
      promptFeedback?: {
        blockReason?: string | null
        [name: string]: unknown
      } | null
      usageMetadata?: {
        cacheTokensDetails?:
          | {
              modality?: string | null
              tokenCount?: number | null
              [name: string]: unknown
            }[]
          | null
        cachedContentTokenCount?: number | null
        candidatesTokenCount?: number | null
        candidatesTokensDetails?:
          | {
              modality?: string | null
              tokenCount?: number | null
              [name: string]: unknown
            }[]
          | null
        /** What the call was charged, in decimal USD. Written by the gateway. */
        cost_usd?: string
        promptTokenCount?: number | null
        promptTokensDetails?:
          | {
              modality?: string | null
              tokenCount?: number | null
              [name: string]: unknown
            }[]
          | null
        thoughtsTokenCount?: number | null
        toolUsePromptTokenCount?: number | null
        totalTokenCount?: number | null
        [name: string]: unknown
      } | null
      [name: string]: unknown
    }
  }
}

/** What a key may look at for free. */
export interface FreeRoutes {
  /** How a task stands. */
  get_task: { input: { task_id: string }; answer: Task }
  /** Ask the provider to end a task; one that has ended stays as it is. */
  cancel_task: { input: { task_id: string }; answer: Task }
  /** Tasks of this key, the newest first. */
  list_tasks: { input: { before?: string; limit?: number }; answer: ListTasksAnswer }
  /** Start to link an account of a user to this key. */
  start_link: { input: Partial<StartLinkRequest>; answer: StartLinkAnswer }
  /** Accounts that are linked to this key. */
  list_links: { input: Record<string, never>; answer: ListLinksAnswer }
  /** What can be spent with this key now. */
  get_balance: { input: Record<string, never>; answer: GetBalanceAnswer }
  /** Models that can be asked for. */
  list_models: { input: { after_id?: string; before_id?: string; limit?: number }; answer: ListModelsAnswer }
  /** One model. */
  get_model: { input: { model: string }; answer: GetModelAnswer }
  /** Calls of this key that have ended or were refused, the latest first. */
  list_requests: {
    input: {
      cursor?: string
      end_time?: number
      end_user?: string
      idempotency_key?: string
      limit?: number
      max_cost_usd?: string
      min_cost_usd?: string
      model?: string
      operation?: string
      outcome?: 'posted' | 'voided' | 'refused'
      start_time?: number
      tag?: string
    }
    answer: ListRequestsAnswer
  }
  /** One call: what it cost, why, and how it went. */
  get_request: { input: { id: string }; answer: GetRequestAnswer }
  /** What has been used, in days of UTC. */
  get_usage: {
    input: {
      bucket?: 'day' | 'hour'
      end_time?: number
      end_user?: string
      group_by?: string
      key?: string
      model?: string
      operation?: string
      start_time: number
      tag?: string
    }
    answer: GetUsageAnswer
  }
}

/** Where each operation is: `q` can be quoted, `t` makes a task. */
export const OPERATIONS = {
  financial_metrics_snapshot: 'GET /apis/v1/financial/financial-metrics/snapshot q',
  user_stories: 'GET /apis/v1/reseller/social_b/v2/fetch_user_stories q',
  creator_search_insights_videos: 'GET /apis/v1/reseller/social_c/app/v3/fetch_creator_search_insights_videos q',
  search_word_suggestion: 'GET /apis/v1/reseller/social_c/shop/web/fetch_search_word_suggestion_v2 q',
  tag_detail: 'GET /apis/v1/reseller/social_c/web/fetch_tag_detail q',
  video_synthesis: 'POST /apis/v1/services/aigc/video-generation/video-synthesis qt',
  follow_user: 'POST /apis/v1/social_a/follow_social_a q',
  tweet_quotes: 'GET /apis/v1/social_a/tweet/quotes q',
  post_comments: 'GET /apis/v1/social_b/post/comments q',
  website_traffic_engagement: 'GET /apis/v1/traffic_analytics/website/traffic-engagement q',
  chat_completions: 'POST /v1/chat/completions q',
  deep_research: 'POST /v1/deep-research/search q',
  embeddings: 'POST /v1/embeddings q',
  image_generations: 'POST /v1/images/generations q',
  messages: 'POST /v1/messages q',
  messages_count_tokens: 'POST /v1/messages/count_tokens',
  rerank: 'POST /v1/rerank q',
  responses: 'POST /v1/responses q',
  batch_embed_contents: 'POST /v1beta/models/{model}:batchEmbedContents q',
  generate_content_count_tokens: 'POST /v1beta/models/{model}:countTokens',
  embed_content: 'POST /v1beta/models/{model}:embedContent q',
  generate_content: 'POST /v1beta/models/{model}:generateContent q',
} as const

/** Where the free routes are. */
export const FREE_ROUTES = {
  get_task: 'GET /apis/v1/services/aigc/tasks/{task_id}',
  cancel_task: 'POST /apis/v1/services/aigc/tasks/{task_id}/cancel',
  list_tasks: 'GET /apis/v1/services/aigc/video-generation/tasks',
  start_link: 'POST /apis/v1/social_a/auth_social_a',
  list_links: 'GET /apis/v1/social_a/links',
  get_balance: 'GET /v1/balance',
  list_models: 'GET /v1/models',
  get_model: 'GET /v1/models/{model}',
  list_requests: 'GET /v1/requests',
  get_request: 'GET /v1/requests/{id}',
  get_usage: 'GET /v1/usage',
} as const

export type QueryValue = string | number | boolean | readonly (string | number | boolean)[] | undefined

export type AnthropicModel = {
  created_at: string
  display_name: string
  id: string
  type: 'model'
}

export type Model = {
  /** The most tokens of input and output together. */
  context_length?: number
  created: number
  /** The output limit of a call that names none. */
  default_output_tokens?: number
  id: string
  input_modalities?: ('text' | 'image' | 'audio' | 'file' | 'video' | 'embedding')[]
  /** The largest output limit that is taken. */
  max_output_tokens?: number
  object: 'model'
  output_modalities?: ('text' | 'image' | 'audio' | 'file' | 'video' | 'embedding')[]
  owned_by: string
  /** As published. What an account pays is told by a quote, which has every price. */
  pricing?: {
    currency: 'USD'
    /** Of tools that the provider runs. */
    per_call?: {
      [name: string]: unknown
    }
    per_image?: {
      [name: string]: unknown
    }
    per_million_tokens?: {
      [name: string]: unknown
    }
    per_second?: {
      [name: string]: unknown
    }
    /** Longer input has prices of its own. */
    steps_above_tokens?: number[]
    /** Service tiers with prices of their own. */
    tiers?: string[]
    version: string
  }
  /** In which it can be asked: each has its own path. */
  protocols?: (
    | 'openai'
    | 'openai_responses'
    | 'anthropic'
    | 'gemini'
    | 'openai_embeddings'
    | 'gemini_embeddings'
    | 'openai_images'
    | 'video'
  )[]
}

export type Money = {
  micros_usd: number
  usd: string
}

export type ProviderBody = unknown

export type Quote = {
  /** Whether balance and budgets cover `max` at this moment, and what a call would be refused with where they do not. */
  admission: {
    budget_kind?: string
    budget_period?: string
    budget_resets_at?: string
    budget_subject?: string
    code?: 'insufficient_balance' | 'budget_exceeded' | 'budget_required'
    fits: boolean
    left_usd?: string
  }
  /** What `expected` takes for granted, in a sentence; left out where the price is exact. */
  assumption?: string
  /** The contentHash of the contract that the operation has; null where none is verified. */
  contract_hash: string | null
  currency: 'USD'
  /** Whether it will cost just that. */
  exact: boolean
  /** What it will probably cost. */
  expected: {
    micros_usd: number
    usd: string
  }
  expires_at: string
  /** What a call would hold, and the most that it can cost. */
  max: {
    micros_usd: number
    usd: string
  }
  operation: string
  price_version: string
  /** Of several units what each costs. */
  prices?: {
    unit: string
    usd: string
  }[]
  /** What a call sends to be charged by this quote. */
  quote_id: string | null
}

export type Task = {
  output: {
    /** Of a task that failed. */
    code?: string
    end_time?: string
    /** Of a task that failed. */
    message?: string
    orig_prompt?: string
    scheduled_time?: string
    submit_time?: string
    task_id: string
    task_status: 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELED' | 'UNKNOWN'
    /** Of a task that succeeded. It works for a few hours. */
    video_url?: string
  }
  request_id: string
  /** Of a task that succeeded. */
  usage?: {
    SR: number | null
    output_video_duration: number
    video_count: number
  }
}

export type BatchEmbedContentsRequest = {
  /** Refused: it redirects or rewrites the request; not supported. */
  api_base?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  api_key?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  base_url?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_body?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_headers?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  fallbacks?: never
  /** Refused: each retry is charged again. */
  max_retries?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  model?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  models?: never
  /** Refused: each retry is charged again. */
  num_retries?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  preset?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  provider?: never
  /** The texts to embed, each as a request of its own. Priced: each is in the bound. */
  requests: BatchEmbedContentsATextToBeEmbedded[]
  /** Refused: it uses another model, whose price is not part of this call. */
  route?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  transforms?: never
  [name: string]: unknown
}

export type BatchEmbedContentsATextToBeEmbedded = {
  /** Refused: it redirects or rewrites the request; not supported. */
  api_base?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  api_key?: never
  /** Refused: only texts are embedded. */
  audioTrackExtraction?: never
  /** Refused: only texts are embedded. */
  audio_track_extraction?: never
  autoTruncate?: unknown
  auto_truncate?: unknown
  /** Refused: it redirects or rewrites the request; not supported. */
  base_url?: never
  /** Priced: in the bound of the input. */
  content: BatchEmbedContentsContentToBeEmbedded
  /** Refused: only texts are embedded. */
  documentOcr?: never
  /** Refused: only texts are embedded. */
  document_ocr?: never
  /** Priced: by its members. */
  embedContentConfig?: BatchEmbedContentsEmbedContentConfig | null
  /** Priced: by its members. */
  embed_content_config?: BatchEmbedContentsEmbedContentConfig | null
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_body?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_headers?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  fallbacks?: never
  /** Refused: each retry is charged again. */
  max_retries?: never
  /** Refused: only texts are embedded. */
  mimeType?: never
  /** Refused: only texts are embedded. */
  mime_type?: never
  model?: unknown
  /** Refused: it uses another model, whose price is not part of this call. */
  models?: never
  /** Refused: each retry is charged again. */
  num_retries?: never
  outputDimensionality?: unknown
  output_dimensionality?: unknown
  /** Refused: it redirects or rewrites the request; not supported. */
  preset?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  provider?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  route?: never
  /** Priced: in the bound of the input. */
  taskType?: unknown
  /** Priced: in the bound of the input. */
  task_type?: unknown
  /** Priced: in the bound of the input. */
  title?: unknown
  /** Refused: it redirects or rewrites the request; not supported. */
  transforms?: never
  [name: string]: unknown
}

export type BatchEmbedContentsContentToBeEmbedded = {
  /** Priced: in the bound of the input. */
  parts?: unknown
  /** Priced: in the bound of the input. */
  role?: unknown
  [name: string]: unknown
}

export type BatchEmbedContentsEmbedContentConfig = {
  /** Refused: only texts are embedded. */
  audioTrackExtraction?: never
  /** Refused: only texts are embedded. */
  audio_track_extraction?: never
  autoTruncate?: unknown
  auto_truncate?: unknown
  /** Refused: only texts are embedded. */
  documentOcr?: never
  /** Refused: only texts are embedded. */
  document_ocr?: never
  /** Refused: only texts are embedded. */
  mimeType?: never
  /** Refused: only texts are embedded. */
  mime_type?: never
  outputDimensionality?: unknown
  output_dimensionality?: unknown
  /** Priced: in the bound of the input. */
  taskType?: unknown
  /** Priced: in the bound of the input. */
  task_type?: unknown
  /** Priced: in the bound of the input. */
  title?: unknown
  [name: string]: unknown
}

export type ChatCompletionsRequest = {
  /** Refused: it redirects or rewrites the request; not supported. */
  api_base?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  api_key?: never
  /** Refused: unless the model has a price of output_audio: spoken answers have a price of their own. */
  audio?: unknown
  /** Refused: it redirects or rewrites the request; not supported. */
  base_url?: never
  /** Refused: it generates more choices than it returns. Use "n". */
  best_of?: never
  /** Refused: a template can repeat the prompt without bound. */
  chat_template?: never
  /** Refused: the cost of a search is not part of the token count. */
  data_sources?: never
  /** Refused: the cost of a search is not part of the token count. */
  enable_search?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_body?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_headers?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  fallbacks?: never
  /** How much words are avoided the more often they have come, from -2 to 2. */
  frequency_penalty?: unknown
  /** Which function the model has to call. The older form of tool_choice. */
  function_call?: unknown
  /** Functions that the model may call. The older form of tools. Priced: in the bound of the input. */
  functions?: ChatCompletionsFunctionOfATool[] | null
  /** Refused: it generates more output than requested. */
  ignore_eos?: never
  /** Tokens to prefer or to avoid, by their ids. */
  logit_bias?: unknown
  /** Whether the answer has the probabilities of its tokens. */
  logprobs?: unknown
  /** How many tokens the answer may have, reasoning included. Priced: the output limit, which is held. */
  max_completion_tokens?: number | null
  /** Refused: use "max_completion_tokens". */
  max_new_tokens?: never
  /** Refused: use "max_completion_tokens". */
  max_output_tokens?: never
  /** Refused: each retry is charged again. */
  max_retries?: never
  /** How many tokens the answer may have. Priced: the output limit, which is held. */
  max_tokens?: number | null
  /** Refused: use "max_completion_tokens". */
  max_tokens_to_sample?: never
  /** The conversation so far, oldest first. Priced: in the bound of the input. */
  messages: ChatCompletionsMessages[]
  /** Notes of yours about the call. The provider keeps them. */
  metadata?: unknown
  /** Drops tokens less likely than this part of the likeliest one. */
  min_p?: unknown
  /** Refused: it generates more output than requested. */
  min_tokens?: never
  /** Refused: it changes the token count of an image. */
  mm_processor_kwargs?: never
  /** What kinds of output the answer has. Limited: other answers have prices of their own. */
  modalities?: 'text' | null | 'text'[]
  /** The name of the model, as the list of models has it. Priced: its price is that of the call. */
  model: string
  /** Refused: it uses another model, whose price is not part of this call. */
  models?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  moderation?: never
  /** How many answers are made. Priced: as many answers are held. */
  n?: number | null
  /** Refused: use "max_completion_tokens". */
  n_predict?: never
  /** Refused: use "max_completion_tokens". */
  num_predict?: never
  /** Refused: each retry is charged again. */
  num_retries?: never
  /** Whether the model may call several tools at once. */
  parallel_tool_calls?: unknown
  /** Refused: the cost of a search is not part of the token count. */
  plugins?: never
  /** Refused: wrong predictions are charged beyond the output limit. */
  prediction?: never
  /** How much words are avoided that have come already, from -2 to 2. */
  presence_penalty?: unknown
  /** Refused: it redirects or rewrites the request; not supported. */
  preset?: never
  /** Calls with the same key share the provider’s prompt cache. */
  prompt_cache_key?: unknown
  /** How the provider keeps the prompt in its cache. */
  prompt_cache_options?: ChatCompletionsPromptCacheOptions | null
  /** How long the provider keeps the prompt in its cache. Limited: a cache that is kept longer has a price of its own. */
  prompt_cache_retention?: 'in_memory' | 'in-memory' | null
  /** Refused: it redirects or rewrites the request; not supported. */
  provider?: never
  /** How much the model reasons before it answers. */
  reasoning_effort?: unknown
  /** How much repetition is avoided: 1 for not at all. */
  repetition_penalty?: unknown
  /** The form of the answer: text, JSON, or a JSON Schema. Priced: in the bound of the input. */
  response_format?: unknown
  /** Refused: it uses another model, whose price is not part of this call. */
  route?: never
  /** Who of your users it is, as a stable id that says nothing about them. The provider uses it against abuse. */
  safety_identifier?: unknown
  /** Refused: the cost of a search is not part of the token count. */
  search_options?: never
  /** Refused: the cost of a search is not part of the token count. */
  search_parameters?: never
  /** The same seed gives the same answer, as far as the provider can. */
  seed?: unknown
  /** The provider’s processing tier. Limited: other tiers have prices of their own. */
  service_tier?: 'auto' | 'default' | null
  /** Texts at which the answer ends. */
  stop?: unknown
  /** Whether the provider keeps the answer. */
  store?: unknown
  /** Whether the answer comes in pieces, as server-sent events. */
  stream?: boolean | null
  /** What a stream has beside its text. */
  stream_options?: ChatCompletionsStreamOptions | null
  /** How much chance the choice of words has: 0 for as little as there can be. */
  temperature?: unknown
  /** Refused: reasoning may exceed the output limit. */
  thinking_budget?: never
  /** Whether the model has to call a tool, and which. */
  tool_choice?: unknown
  /** Tools that the model may call. Priced: in the bound of the input. */
  tools?: ChatCompletionsTools[] | null
  /** From how many of the likeliest tokens each is chosen. */
  top_k?: unknown
  /** Of how many tokens at each place the answer has the probabilities. */
  top_logprobs?: unknown
  /** From which part of the probability each token is chosen. */
  top_p?: unknown
  /** Refused: it redirects or rewrites the request; not supported. */
  transforms?: never
  /** Refused: it generates more output than requested. */
  use_beam_search?: never
  /** Who of your users it is. Usage can be told apart by it. */
  user?: unknown
  /** How long the answer is: low, medium or high. */
  verbosity?: unknown
  /** Refused: the cost of a search is not part of the token count. */
  web_search_options?: never
  [name: string]: unknown
}

export type ChatCompletionsFunctionOfATool = {
  /** Priced: in the bound of the input. */
  description?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  /** Priced: in the bound of the input. */
  parameters?: unknown
  strict?: unknown
  [name: string]: unknown
}

export type ChatCompletionsMessages = {
  /** Priced: in the bound of the input. */
  annotations?: unknown
  /** Refused: audio has no price of its own here yet. Send text. */
  audio?: never
  /** Priced: in the bound of the input. */
  content?: unknown
  /** Priced: in the bound of the input. */
  function_call?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  /** Priced: in the bound of the input. */
  parsed?: unknown
  /** Priced: in the bound of the input. */
  reasoning?: unknown
  /** Priced: in the bound of the input. */
  reasoning_content?: unknown
  /** Priced: in the bound of the input. */
  reasoning_details?: unknown
  /** Priced: in the bound of the input. */
  refusal?: unknown
  /** Priced: in the bound of the input. */
  role?: unknown
  /** Priced: in the bound of the input. */
  tool_call_id?: unknown
  /** Priced: in the bound of the input. */
  tool_calls?: unknown
  [name: string]: unknown
}

export type ChatCompletionsPromptCacheOptions = {
  mode?: unknown
  /** Limited: a cache that is kept longer has a price of its own. */
  ttl?: '30m' | null
  [name: string]: unknown
}

export type ChatCompletionsStreamOptions = {
  include_obfuscation?: unknown
  include_usage?: unknown
  [name: string]: unknown
}

export type ChatCompletionsTools = unknown

export type ChatCompletionsToolsOfTypeCustom = {
  /** Priced: in the bound of the input. */
  custom?: unknown
  type?: unknown
  [name: string]: unknown
}

export type ChatCompletionsToolsOfTypeFunction = {
  /** Priced: in the bound of the input. */
  function?: unknown
  type?: unknown
  [name: string]: unknown
}

export type DeepResearchRequest = {
  [name: string]: unknown
}

export type EmbedContentRequest = {
  /** Refused: it redirects or rewrites the request; not supported. */
  api_base?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  api_key?: never
  /** Refused: only texts are embedded. */
  audioTrackExtraction?: never
  /** Refused: only texts are embedded. */
  audio_track_extraction?: never
  /** Whether a text that is too long is cut instead of refused. */
  autoTruncate?: unknown
  /** Whether a text that is too long is cut instead of refused. */
  auto_truncate?: unknown
  /** Refused: it redirects or rewrites the request; not supported. */
  base_url?: never
  /** The text to embed, in parts. Priced: in the bound of the input. */
  content: EmbedContentContentToBeEmbedded
  /** Refused: only texts are embedded. */
  documentOcr?: never
  /** Refused: only texts are embedded. */
  document_ocr?: never
  /** Settings of the embedding. Priced: by its members. */
  embedContentConfig?: EmbedContentEmbedContentConfig | null
  /** Settings of the embedding. Priced: by its members. */
  embed_content_config?: EmbedContentEmbedContentConfig | null
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_body?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_headers?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  fallbacks?: never
  /** Refused: each retry is charged again. */
  max_retries?: never
  /** Refused: only texts are embedded. */
  mimeType?: never
  /** Refused: only texts are embedded. */
  mime_type?: never
  /** The name of the model, as the list of models has it. */
  model?: unknown
  /** Refused: it uses another model, whose price is not part of this call. */
  models?: never
  /** Refused: each retry is charged again. */
  num_retries?: never
  /** How many numbers a vector has. */
  outputDimensionality?: unknown
  /** How many numbers a vector has. */
  output_dimensionality?: unknown
  /** Refused: it redirects or rewrites the request; not supported. */
  preset?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  provider?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  route?: never
  /** What the vectors are for. Priced: in the bound of the input. */
  taskType?: unknown
  /** What the vectors are for. Priced: in the bound of the input. */
  task_type?: unknown
  /** The title of the text. Priced: in the bound of the input. */
  title?: unknown
  /** Refused: it redirects or rewrites the request; not supported. */
  transforms?: never
  [name: string]: unknown
}

export type EmbedContentContentToBeEmbedded = {
  /** Priced: in the bound of the input. */
  parts?: unknown
  /** Priced: in the bound of the input. */
  role?: unknown
  [name: string]: unknown
}

export type EmbedContentEmbedContentConfig = {
  /** Refused: only texts are embedded. */
  audioTrackExtraction?: never
  /** Refused: only texts are embedded. */
  audio_track_extraction?: never
  autoTruncate?: unknown
  auto_truncate?: unknown
  /** Refused: only texts are embedded. */
  documentOcr?: never
  /** Refused: only texts are embedded. */
  document_ocr?: never
  /** Refused: only texts are embedded. */
  mimeType?: never
  /** Refused: only texts are embedded. */
  mime_type?: never
  outputDimensionality?: unknown
  output_dimensionality?: unknown
  /** Priced: in the bound of the input. */
  taskType?: unknown
  /** Priced: in the bound of the input. */
  task_type?: unknown
  /** Priced: in the bound of the input. */
  title?: unknown
  [name: string]: unknown
}

export type EmbeddingsRequest = {
  /** Refused: it redirects or rewrites the request; not supported. */
  api_base?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  api_key?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  base_url?: never
  /** Refused: a template can repeat the input without bound. */
  chat_template?: never
  /** How many numbers a vector has. */
  dimensions?: unknown
  /** Refused: what is to be embedded stands in "input". */
  documents?: never
  /** How the vectors are written. Limited: other formats do not report their cost. */
  encoding_format?: 'float' | 'base64' | null
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_body?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_headers?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  fallbacks?: never
  /** Refused: only texts are embedded. */
  image?: never
  /** Refused: only texts are embedded. */
  images?: never
  /** What the model works on: a text, or a list of items. Priced: each input is in the bound. */
  input: string | unknown[]
  /** Refused: what is to be embedded stands in "input". */
  inputs?: never
  /** Refused: each retry is charged again. */
  max_retries?: never
  /** Refused: what is to be embedded stands in "input". */
  messages?: never
  /** Refused: only texts are embedded. */
  mm_processor_kwargs?: never
  /** The name of the model, as the list of models has it. Priced: its price is that of the call. */
  model: string
  /** Refused: it uses another model, whose price is not part of this call. */
  models?: never
  /** Refused: each retry is charged again. */
  num_retries?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  preset?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  provider?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  route?: never
  /** The provider’s processing tier. Limited: other tiers have prices of their own. */
  service_tier?: 'auto' | 'default' | null
  /** Whether the answer comes in pieces, as server-sent events. Limited: embeddings always come whole. */
  stream?: false | null
  /** Refused: it redirects or rewrites the request; not supported. */
  transforms?: never
  /** Who of your users it is. Usage can be told apart by it. */
  user?: unknown
  [name: string]: unknown
}

export type FollowUserRequest = {
  [name: string]: unknown
}

export type GenerateContentRequest = {
  /** Refused: it redirects or rewrites the request; not supported. */
  api_base?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  api_key?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  base_url?: never
  /** Refused: it generates more output than requested. */
  best_of?: never
  /** Refused: content that the provider stores cannot be priced in advance. */
  cachedContent?: never
  /** Refused: content that the provider stores cannot be priced in advance. */
  cached_content?: never
  /** Refused: a template can repeat the prompt without bound. */
  chat_template?: never
  /** The conversation so far, oldest first. Priced: in the bound of the input. */
  contents: unknown
  /** Refused: content that the provider stores cannot be priced in advance. */
  continuationToken?: never
  /** Refused: content that the provider stores cannot be priced in advance. */
  continuation_token?: never
  /** Refused: the cost of a search is not part of the token count. */
  data_sources?: never
  /** Refused: the cost of a search is not part of the token count. */
  enable_search?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_body?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_headers?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  fallbacks?: never
  /** Settings of the generation: output limit, temperature, format and others. Priced: by its members. */
  generationConfig?: unknown
  /** Refused: tools that the provider runs are not metered. */
  generationOutputConfig?: never
  /** Settings of the generation: output limit, temperature, format and others. Priced: by its members. */
  generation_config?: unknown
  /** Refused: tools that the provider runs are not metered. */
  generation_output_config?: never
  /** Refused: it generates more output than requested. */
  ignore_eos?: never
  /** Notes of yours about the call. The provider keeps them. */
  labels?: unknown
  /** Refused: use "generationConfig.maxOutputTokens". */
  max_completion_tokens?: never
  /** Refused: use "generationConfig.maxOutputTokens". */
  max_new_tokens?: never
  /** Refused: use "generationConfig.maxOutputTokens". */
  max_output_tokens?: never
  /** Refused: each retry is charged again. */
  max_retries?: never
  /** Refused: use "generationConfig.maxOutputTokens". */
  max_tokens?: never
  /** Refused: use "generationConfig.maxOutputTokens". */
  max_tokens_to_sample?: never
  /** Refused: it generates more output than requested. */
  min_tokens?: never
  /** Refused: it changes the token count of an image. */
  mm_processor_kwargs?: never
  /** The name of the model, as the list of models has it. Priced: in the path alone; in what is counted it is replaced. */
  model?: unknown
  /** Refused: tools that the provider runs are not metered. */
  modelArmorConfig?: never
  /** Refused: tools that the provider runs are not metered. */
  model_armor_config?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  models?: never
  /** Refused: it generates more output than requested. */
  n?: never
  /** Refused: use "generationConfig.maxOutputTokens". */
  n_predict?: never
  /** Refused: use "generationConfig.maxOutputTokens". */
  num_predict?: never
  /** Refused: each retry is charged again. */
  num_retries?: never
  /** Refused: the cost of a search is not part of the token count. */
  plugins?: never
  /** Refused: wrong predictions are charged beyond the output limit. */
  prediction?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  preset?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  provider?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  route?: never
  /** Above which level the provider blocks content, by kind. */
  safetySettings?: unknown
  /** Above which level the provider blocks content, by kind. */
  safety_settings?: unknown
  /** Refused: the cost of a search is not part of the token count. */
  search_options?: never
  /** Refused: the cost of a search is not part of the token count. */
  search_parameters?: never
  /** The provider’s processing tier. Limited: other tiers have prices of their own. */
  serviceTier?: 'standard' | 'unspecified' | null
  /** The provider’s processing tier. Limited: other tiers have prices of their own. */
  service_tier?: 'standard' | 'unspecified' | null
  /** Whether the provider keeps the answer. */
  store?: unknown
  /** Instructions that come before the conversation. Priced: in the bound of the input. */
  systemInstruction?: unknown
  /** Instructions that come before the conversation. Priced: in the bound of the input. */
  system_instruction?: unknown
  /** Refused: reasoning may exceed the output limit. */
  thinking_budget?: never
  /** Whether and which functions the model has to call. */
  toolConfig?: unknown
  /** Whether and which functions the model has to call. */
  tool_config?: unknown
  /** Tools that the model may call. Priced: in the bound of the input. */
  tools?: Record<string, unknown> | null | unknown[] | null
  /** Refused: it redirects or rewrites the request; not supported. */
  transforms?: never
  /** Refused: it generates more output than requested. */
  use_beam_search?: never
  /** Refused: the cost of a search is not part of the token count. */
  web_search_options?: never
  [name: string]: unknown
}

export type GenerateContentCountTokensAnswer = {
  cachedContentTokenCount?: number | null
  totalTokens?: number | null
  [name: string]: unknown
}

export type GenerateContentCountTokensRequest = {
  /** Refused: it redirects or rewrites the request; not supported. */
  api_base?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  api_key?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  base_url?: never
  /** Refused: it generates more output than requested. */
  best_of?: never
  /** Refused: content that the provider stores cannot be priced in advance. */
  cachedContent?: never
  /** Refused: content that the provider stores cannot be priced in advance. */
  cached_content?: never
  /** Refused: a template can repeat the prompt without bound. */
  chat_template?: never
  /** The conversation so far, oldest first. Priced: in the bound of the input. */
  contents?: unknown
  /** Refused: content that the provider stores cannot be priced in advance. */
  continuationToken?: never
  /** Refused: content that the provider stores cannot be priced in advance. */
  continuation_token?: never
  /** Refused: the cost of a search is not part of the token count. */
  data_sources?: never
  /** Refused: the cost of a search is not part of the token count. */
  enable_search?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_body?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_headers?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  fallbacks?: never
  /** The whole request whose tokens are counted. Priced: it costs nothing. */
  generateContentRequest?: unknown
  /** The whole request whose tokens are counted. Priced: it costs nothing. */
  generate_content_request?: unknown
  /** Settings of the generation: output limit, temperature, format and others. Priced: by its members. */
  generationConfig?: unknown
  /** Refused: tools that the provider runs are not metered. */
  generationOutputConfig?: never
  /** Settings of the generation: output limit, temperature, format and others. Priced: by its members. */
  generation_config?: unknown
  /** Refused: tools that the provider runs are not metered. */
  generation_output_config?: never
  /** Refused: it generates more output than requested. */
  ignore_eos?: never
  /** Notes of yours about the call. The provider keeps them. */
  labels?: unknown
  /** Refused: use "generationConfig.maxOutputTokens". */
  max_completion_tokens?: never
  /** Refused: use "generationConfig.maxOutputTokens". */
  max_new_tokens?: never
  /** Refused: use "generationConfig.maxOutputTokens". */
  max_output_tokens?: never
  /** Refused: each retry is charged again. */
  max_retries?: never
  /** Refused: use "generationConfig.maxOutputTokens". */
  max_tokens?: never
  /** Refused: use "generationConfig.maxOutputTokens". */
  max_tokens_to_sample?: never
  /** Refused: it generates more output than requested. */
  min_tokens?: never
  /** Refused: it changes the token count of an image. */
  mm_processor_kwargs?: never
  /** The name of the model, as the list of models has it. Priced: in the path alone; in what is counted it is replaced. */
  model?: unknown
  /** Refused: tools that the provider runs are not metered. */
  modelArmorConfig?: never
  /** Refused: tools that the provider runs are not metered. */
  model_armor_config?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  models?: never
  /** Refused: it generates more output than requested. */
  n?: never
  /** Refused: use "generationConfig.maxOutputTokens". */
  n_predict?: never
  /** Refused: use "generationConfig.maxOutputTokens". */
  num_predict?: never
  /** Refused: each retry is charged again. */
  num_retries?: never
  /** Refused: the cost of a search is not part of the token count. */
  plugins?: never
  /** Refused: wrong predictions are charged beyond the output limit. */
  prediction?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  preset?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  provider?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  route?: never
  /** Above which level the provider blocks content, by kind. */
  safetySettings?: unknown
  /** Above which level the provider blocks content, by kind. */
  safety_settings?: unknown
  /** Refused: the cost of a search is not part of the token count. */
  search_options?: never
  /** Refused: the cost of a search is not part of the token count. */
  search_parameters?: never
  /** The provider’s processing tier. Limited: other tiers have prices of their own. */
  serviceTier?: 'standard' | 'unspecified' | null
  /** The provider’s processing tier. Limited: other tiers have prices of their own. */
  service_tier?: 'standard' | 'unspecified' | null
  /** Whether the provider keeps the answer. */
  store?: unknown
  /** Instructions that come before the conversation. Priced: in the bound of the input. */
  systemInstruction?: unknown
  /** Instructions that come before the conversation. Priced: in the bound of the input. */
  system_instruction?: unknown
  /** Refused: reasoning may exceed the output limit. */
  thinking_budget?: never
  /** Whether and which functions the model has to call. */
  toolConfig?: unknown
  /** Whether and which functions the model has to call. */
  tool_config?: unknown
  /** Tools that the model may call. Priced: in the bound of the input. */
  tools?: Record<string, unknown> | null | unknown[] | null
  /** Refused: it redirects or rewrites the request; not supported. */
  transforms?: never
  /** Refused: it generates more output than requested. */
  use_beam_search?: never
  /** Refused: the cost of a search is not part of the token count. */
  web_search_options?: never
  [name: string]: unknown
}

export type GetBalanceAnswer = {
  available?: Money
  /** Of the key or the token; null where it has none. */
  budget: {
    amount: Money
    left: Money
    period: string
    spent: Money
  } | null
  /** All that calls of this key or token count against, and of the tags and the end user that this request names in its headers. A call has to fit into each. */
  budgets: {
    amount: Money
    kind: 'key' | 'mandate' | 'member' | 'workspace' | 'tag' | 'end_user'
    left: Money
    period: string
    resets_at: string | null
    spent: Money
    subject: string | null
  }[]
  currency: 'USD'
  debt?: Money
  held?: Money
  mode: 'live' | 'test'
  promotional?: Money
}

export type GetModelAnswer = Model | AnthropicModel

export type GetRequestAnswer =
  | {
      begun_at: string | null
      cost: Money
      /** How the call ran; null where that was not kept. */
      detail: {
        /** What the account had left when it had ended; null for a token that may not see it. */
        balance_after: Money | null
        evidence: {
          [name: string]: unknown
        }
        first_byte_ms: number | null
        /** How the price was worked out. */
        formula: string | null
        /** What was held for it when it began, and each time that this grew. */
        hold: {
          amount: Money
          at_ms: number
        }[]
        /** The version of the price that it was charged by. */
        price_version: string | null
        /** By which route of the model the call went, and why. */
        routing: {
          reason: 'sticky' | 'failover' | 'spill' | 'only'
          slot: string
          upstream_model: string
        } | null
        status: number | null
        timeline: {
          [name: string]: unknown
        }
        upstream: {
          began_ms: number | null
          ended_ms: number | null
          outcome: string
          reason: string | null
          slot: string
          status: number | null
        }[]
      } | null
      /** For whom the call was made. */
      end_user: {
        id: string
        label: string | null
      } | null
      ended_at: string
      executed: boolean
      failed: boolean
      /** The most that it could cost: set aside while it ran. */
      held: unknown
      id: string
      ledger: {
        at: string
        charged: Money
        id: string
        kind: string
        promotional?: Money
      }[]
      model: string | null
      operation: string | null
      outcome: 'posted' | 'voided'
      /** What it used beyond that: the loss of the operator, charged to nobody. */
      overrun: unknown
      /** What it did to the balance, in the order of time. */
      postings: {
        amount: Money
        at: string
        /** Where it went. */
        credit: 'available' | 'held' | 'charged'
        /** Where the amount left. */
        debit: 'available' | 'held' | 'charged'
        /** hold, charge or release; or the kind of a correction. */
        entry: string
      }[]
      published_value: Money
      /** Whom the call went to, by the slot of the upstream. */
      route: string | null
      /** What the call was made for. */
      tags: {
        [name: string]: unknown
      }
      /** The formula by its products, exact. Their sum is rounded once; empty where it has none. */
      terms: {
        cost_usd: string
        count: string
        price_usd: string
        unit: string
      }[]
      tokens: {
        cache_read: number
        cache_write: number
        input: number
        output: number
      }
    }
  | {
      begun_at: string
      /** For whom the call was made. */
      end_user: {
        id: string
        label: string | null
      } | null
      held: Money
      id: string
      model: string | null
      operation: string | null
      outcome: 'running' | 'unsettled'
      /** What the call was made for. */
      tags: {
        [name: string]: unknown
      }
      unsettled_at: string | null
    }
  | {
      begun_at: string | null
      cost: Money
      /** For whom the call was made. */
      end_user: {
        id: string
        label: string | null
      } | null
      ended_at: string
      failed: boolean
      id: string
      model: string | null
      operation: string | null
      outcome: 'refused'
      /** Of a refused call: why, and what would have let it through. */
      refusal: {
        /** The tightest budget that was in the way. */
        budget: {
          kind: string
          period: string
          subject: string | null
        } | null
        code: string
        /** What would have let it through. */
        fix: {
          /** With this output limit it would have fitted. */
          output_limit: number | null
          retry_after_seconds: number | null
          /** The page where it is mended. */
          url: string | null
        }
        /** What there was for it; null where its caller was not told. */
        left: Money | null
        /** Whose the limit is: key, tier or endpoint. */
        limited_by: string | null
        /** What such a refusal means, and what to do. */
        message: string
        /** What would have been held. */
        needed: Money | null
        status: number
      }
      /** What the call was made for. */
      tags: {
        [name: string]: unknown
      }
    }

export type GetUsageAnswer = {
  bucket_width: string
  /** In the order of time. */
  buckets: {
    cache_read_tokens: number
    cache_write_tokens: number
    /** What was charged. */
    charged_micros_usd: number
    /** In Unix seconds. */
    end_time: number
    failed_requests: number
    input_tokens: number
    output_tokens: number
    requests: number
    /** In Unix seconds. */
    start_time: number
    /** The metered value at published prices. */
    usage_value_micros_usd: number
  }[]
  currency: 'USD'
  /** In Unix seconds. */
  end_time: number
  /** Where it was asked for, as are the groups. */
  group_by?: string
  /** The largest 50 first. They add up to the totals, exactly. */
  groups?: {
    /** Those in which it used anything, in the order of time. */
    buckets: {
      cache_read_tokens: number
      cache_write_tokens: number
      /** What was charged, exact, in USD. */
      charged_usd: string
      /** In Unix seconds. */
      end_time: number
      failed_requests: number
      input_tokens: number
      output_tokens: number
      requests: number
      /** In Unix seconds. */
      start_time: number
      /** The metered value at published prices, exact, in USD. */
      usage_value_usd: string
    }[]
    /** A group; the smaller ones together; or what has none of what it is grouped by. */
    kind: 'group' | 'other' | 'none'
    /** Of an end user: short, for people. */
    label: string | null
    totals: {
      cache_read_tokens: number
      cache_write_tokens: number
      /** What was charged, exact, in USD. */
      charged_usd: string
      failed_requests: number
      input_tokens: number
      output_tokens: number
      requests: number
      /** The metered value at published prices, exact, in USD. */
      usage_value_usd: string
    }
    /** The key, operation, model, end user or value of the tag. */
    value: string | null
  }[]
  /** How many are told as one; left out where they are too many to count. */
  other_groups?: number
  /** What the credential lets the report be about, such as key or account. */
  scope: string
  /** In Unix seconds. */
  start_time: number
  totals: {
    cache_read_tokens: number
    cache_write_tokens: number
    /** What was charged. */
    charged_micros_usd: number
    failed_requests: number
    input_tokens: number
    output_tokens: number
    requests: number
    /** The metered value at published prices. */
    usage_value_micros_usd: number
  }
}

export type ImageGenerationsRequest = {
  /** Refused: it redirects or rewrites the request; not supported. */
  api_base?: never
  /** Whether the background of the picture is transparent, opaque, or chosen by the model. */
  background?: unknown
  /** Refused: it may change the price of an image. */
  complexity?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_body?: never
  /** Refused: it may change the price of an image. */
  frame_count?: never
  /** Refused: it may change the price of an image. */
  frame_duration_ms?: never
  /** The name of the model, as the list of models has it. Priced: its price is that of the call. */
  model: string
  /** How strictly the provider checks the prompt. */
  moderation?: unknown
  /** How many answers are made. Priced: as many pictures are held. */
  n?: number | null
  /** How far the picture is compressed, in percent. */
  output_compression?: unknown
  /** The format of the answer. Limited: other formats have their own prices. */
  output_format?: 'png' | 'jpeg' | 'webp' | null
  /** Refused: partial images have their own price and are not sent here. */
  partial_images?: never
  /** What the picture is to show. Priced: in the bound of the input. */
  prompt: string
  /** Refused: it redirects or rewrites the request; not supported. */
  provider?: never
  /** The quality of the picture. Priced: a picture has a price by its size and quality. */
  quality?: string | null
  /** The form of the answer: text, JSON, or a JSON Schema. Limited: other formats do not report the number of images. */
  response_format?: 'url' | 'b64_json' | null
  /** Who of your users it is, as a stable id that says nothing about them. The provider uses it against abuse. */
  safety_identifier?: unknown
  /** Width and height of the picture, such as 1024x1024. Priced: a picture has a price by its size and quality. */
  size?: string | null
  /** Whether the answer comes in pieces, as server-sent events. Limited: partial images have their own price and are not sent here. */
  stream?: false | null
  /** The style of the picture. */
  style?: unknown
  /** Refused: it uses another model, whose price is not part of this call. */
  svg?: never
  /** Who of your users it is. Usage can be told apart by it. */
  user?: unknown
}

export type ListLinksAnswer = {
  data: {
    expires_at: string | null
    id: string
    linked_at: string
    /** Why it has to be linked again. */
    reason: string | null
    /** Since when the platform refuses its tokens. The next call tries once more; if they are refused again, it ends. */
    refused_at: string | null
    scopes: string[]
    status: 'active' | 'needs_link'
    user_id: string
    username: string | null
  }[]
}

export type ListModelsAnswer =
  | {
      data: Model[]
      object: 'list'
    }
  | {
      data: AnthropicModel[]
      first_id: string | null
      has_more: boolean
      last_id: string | null
    }

export type ListRequestsAnswer = {
  data: {
    begun_at: string | null
    cost: Money
    /** For whom the call was made. */
    end_user: {
      id: string
      label: string | null
    } | null
    ended_at: string
    failed: boolean
    id: string
    model: string | null
    operation: string | null
    outcome: 'posted' | 'voided' | 'refused'
    /** Of a refused call: why, and what would have let it through. */
    refusal?: {
      /** The tightest budget that was in the way. */
      budget: {
        kind: string
        period: string
        subject: string | null
      } | null
      code: string
      /** What would have let it through. */
      fix: {
        /** With this output limit it would have fitted. */
        output_limit: number | null
        retry_after_seconds: number | null
        /** The page where it is mended. */
        url: string | null
      }
      /** What there was for it; null where its caller was not told. */
      left: Money | null
      /** Whose the limit is: key, tier or endpoint. */
      limited_by: string | null
      /** What such a refusal means, and what to do. */
      message: string
      /** What would have been held. */
      needed: Money | null
      status: number
    }
    /** What the call was made for. */
    tags: {
      [name: string]: unknown
    }
  }[]
  next_cursor: string | null
  /** Where idempotency_key was asked for: those that run, or whose outcome nobody knows yet. */
  open?: {
    begun_at: string
    /** For whom the call was made. */
    end_user: {
      id: string
      label: string | null
    } | null
    held: Money
    id: string
    model: string | null
    operation: string | null
    outcome: 'running' | 'unsettled'
    /** What the call was made for. */
    tags: {
      [name: string]: unknown
    }
    unsettled_at: string | null
  }[]
  /** Where idempotency_key was asked for: the latest that were refused, which are no calls that the key belongs to. */
  refused?: {
    begun_at: string | null
    cost: Money
    /** For whom the call was made. */
    end_user: {
      id: string
      label: string | null
    } | null
    ended_at: string
    failed: boolean
    id: string
    model: string | null
    operation: string | null
    outcome: 'refused'
    /** Of a refused call: why, and what would have let it through. */
    refusal: {
      /** The tightest budget that was in the way. */
      budget: {
        kind: string
        period: string
        subject: string | null
      } | null
      code: string
      /** What would have let it through. */
      fix: {
        /** With this output limit it would have fitted. */
        output_limit: number | null
        retry_after_seconds: number | null
        /** The page where it is mended. */
        url: string | null
      }
      /** What there was for it; null where its caller was not told. */
      left: Money | null
      /** Whose the limit is: key, tier or endpoint. */
      limited_by: string | null
      /** What such a refusal means, and what to do. */
      message: string
      /** What would have been held. */
      needed: Money | null
      status: number
    }
    /** What the call was made for. */
    tags: {
      [name: string]: unknown
    }
  }[]
}

export type ListTasksAnswer = {
  data: {
    cost_usd: string | null
    output: {
      /** Of a task that failed. */
      code?: string
      end_time?: string
      /** Of a task that failed. */
      message?: string
      orig_prompt?: string
      scheduled_time?: string
      submit_time?: string
      task_id: string
      task_status: 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELED' | 'UNKNOWN'
      /** Of a task that succeeded. It works for a few hours. */
      video_url?: string
    }
    /** Of a task that succeeded. */
    usage?: {
      SR: number | null
      output_video_duration: number
      video_count: number
    }
  }[]
  next_before: string | null
  request_id: string
}

export type MessagesRequest = {
  /** Refused: send it as the header anthropic-beta. */
  anthropic_beta?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  api_base?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  api_key?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  base_url?: never
  /** Refused: it generates more output than requested. */
  best_of?: never
  /** Refused: send them as the header anthropic-beta. */
  betas?: never
  /** Up to where the provider keeps the prompt in its cache. */
  cache_control?: MessagesCacheControl | null
  /** Refused: a template can repeat the prompt without bound. */
  chat_template?: never
  /** Refused: the text of a summary is charged beyond the output limit. */
  compaction?: never
  /** Refused: tools that the provider runs are not metered. */
  container?: never
  /** What the provider drops from a long conversation by itself. */
  context_management?: MessagesContextManagement | null
  /** Refused: the cost of a search is not part of the token count. */
  data_sources?: never
  /** What the provider reports about the call beside its answer. */
  diagnostics?: unknown
  /** Refused: the cost of a search is not part of the token count. */
  enable_search?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_body?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_headers?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  fallback_credit_token?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  fallbacks?: never
  /** Refused: it generates more output than requested. */
  ignore_eos?: never
  /** Limited: a region has a price of its own. */
  inference_geo?: 'global' | null
  /** Refused: use "max_tokens". */
  max_completion_tokens?: never
  /** Refused: use "max_tokens". */
  max_new_tokens?: never
  /** Refused: use "max_tokens". */
  max_output_tokens?: never
  /** Refused: each retry is charged again. */
  max_retries?: never
  /** How many tokens the answer may have. Priced: the output limit, which is held. */
  max_tokens?: number | null
  /** Refused: use "max_tokens". */
  max_tokens_to_sample?: never
  /** Refused: tools that the provider runs are not metered. */
  mcp_servers?: never
  /** The conversation so far, oldest first. Priced: in the bound of the input. */
  messages: MessagesMessages[]
  /** Notes of yours about the call. The provider keeps them. */
  metadata?: unknown
  /** Refused: it generates more output than requested. */
  min_tokens?: never
  /** Refused: it changes the token count of an image. */
  mm_processor_kwargs?: never
  /** The name of the model, as the list of models has it. Priced: its price is that of the call. */
  model: string
  /** Refused: it uses another model, whose price is not part of this call. */
  models?: never
  /** Refused: it generates more output than requested. */
  n?: never
  /** Refused: use "max_tokens". */
  n_predict?: never
  /** Refused: use "max_tokens". */
  num_predict?: never
  /** Refused: each retry is charged again. */
  num_retries?: never
  /** How the answer is made: its effort and its format. Priced: in the bound of the input. */
  output_config?: unknown
  /** The format of the answer. Priced: in the bound of the input. */
  output_format?: unknown
  /** Refused: the cost of a search is not part of the token count. */
  plugins?: never
  /** Refused: wrong predictions are charged beyond the output limit. */
  prediction?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  preset?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  provider?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  route?: never
  /** Refused: the cost of a search is not part of the token count. */
  search_options?: never
  /** Refused: the cost of a search is not part of the token count. */
  search_parameters?: never
  /** The provider’s processing tier. Limited: other tiers have prices of their own. */
  service_tier?: 'auto' | 'standard_only' | null
  /** How fast the provider answers. Limited: other speeds have prices of their own. */
  speed?: 'standard' | null
  /** Texts at which the answer ends. */
  stop_sequences?: unknown
  /** Whether the answer comes in pieces, as server-sent events. */
  stream?: boolean | null
  /** Instructions that come before the conversation. Priced: in the bound of the input. */
  system?: unknown
  /** How much chance the choice of words has: 0 for as little as there can be. */
  temperature?: unknown
  /** Whether the model thinks before it answers, and for how many tokens. */
  thinking?: unknown
  /** Refused: reasoning may exceed the output limit. */
  thinking_budget?: never
  /** Refused: a conversation that the provider stores cannot be priced in advance. */
  thread?: never
  /** Whether the model has to call a tool, and which. */
  tool_choice?: unknown
  /** Tools that the model may call. Priced: in the bound of the input. */
  tools?: MessagesTools[] | null
  /** From how many of the likeliest tokens each is chosen. */
  top_k?: unknown
  /** From which part of the probability each token is chosen. */
  top_p?: unknown
  /** Refused: it redirects or rewrites the request; not supported. */
  transforms?: never
  /** Refused: it generates more output than requested. */
  use_beam_search?: never
  /** Refused: it refers to your own account with the provider, which is not used here. */
  user_profile_id?: never
  /** Refused: the cost of a search is not part of the token count. */
  web_search_options?: never
  /** Refused: it refers to your own account with the provider, which is not used here. */
  workspace_id?: never
  [name: string]: unknown
}

export type MessagesCacheControl = {
  scope?: unknown
  /** Limited: a cache that is kept longer has a price of its own. */
  ttl?: '5m' | null
  type?: unknown
  [name: string]: unknown
}

export type MessagesContextManagement = {
  edits?: MessagesEditsOfContextManagement[] | null
  [name: string]: unknown
}

export type MessagesEditsOfContextManagement = unknown

export type MessagesEditsOfTypeClearThinking = {
  keep?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesEditsOfTypeClearToolUses = {
  clear_at_least?: unknown
  clear_tool_inputs?: unknown
  exclude_tools?: unknown
  keep?: unknown
  trigger?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesMessages = {
  clear_at?: unknown
  /** Priced: in the bound of the input. */
  content?: unknown
  output_config?: unknown
  /** Priced: in the bound of the input. */
  role?: unknown
  [name: string]: unknown
}

export type MessagesTools = unknown

export type MessagesToolsOfTypeBash = {
  allowed_callers?: unknown
  cache_control?: MessagesCacheControl | null
  defer_loading?: unknown
  /** Priced: in the bound of the input. */
  input_examples?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  strict?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesToolsOfTypeComputer = {
  allowed_callers?: unknown
  cache_control?: MessagesCacheControl | null
  defer_loading?: unknown
  display_height_px?: unknown
  display_number?: unknown
  display_width_px?: unknown
  enable_zoom?: unknown
  /** Priced: in the bound of the input. */
  input_examples?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  strict?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesToolsOfTypeComputerToolset = {
  cache_control?: MessagesCacheControl | null
  /** Priced: in the bound of the input. */
  configs?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesToolsOfTypeCustomOrWithoutAType = {
  allowed_callers?: unknown
  cache_control?: MessagesCacheControl | null
  defer_loading?: unknown
  /** Priced: in the bound of the input. */
  description?: unknown
  eager_input_streaming?: unknown
  /** Priced: in the bound of the input. */
  input_examples?: unknown
  /** Priced: in the bound of the input. */
  input_schema?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  strict?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesToolsOfTypeMemory = {
  allowed_callers?: unknown
  cache_control?: MessagesCacheControl | null
  defer_loading?: unknown
  /** Priced: in the bound of the input. */
  input_examples?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  strict?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesToolsOfTypeTextEditor = {
  allowed_callers?: unknown
  cache_control?: MessagesCacheControl | null
  defer_loading?: unknown
  /** Priced: in the bound of the input. */
  input_examples?: unknown
  max_characters?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  strict?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesCountTokensAnswer = {
  input_tokens?: number | null
  [name: string]: unknown
}

export type MessagesCountTokensRequest = {
  /** Refused: send it as the header anthropic-beta. */
  anthropic_beta?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  api_base?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  api_key?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  base_url?: never
  /** Refused: it generates more output than requested. */
  best_of?: never
  /** Refused: send them as the header anthropic-beta. */
  betas?: never
  /** Up to where the provider keeps the prompt in its cache. */
  cache_control?: MessagesCountTokensCacheControl | null
  /** Refused: a template can repeat the prompt without bound. */
  chat_template?: never
  /** Refused: the text of a summary is charged beyond the output limit. */
  compaction?: never
  /** Refused: tools that the provider runs are not metered. */
  container?: never
  /** What the provider drops from a long conversation by itself. */
  context_management?: MessagesCountTokensContextManagement | null
  /** Refused: the cost of a search is not part of the token count. */
  data_sources?: never
  /** What the provider reports about the call beside its answer. */
  diagnostics?: unknown
  /** Refused: the cost of a search is not part of the token count. */
  enable_search?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_body?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_headers?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  fallback_credit_token?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  fallbacks?: never
  /** Refused: it generates more output than requested. */
  ignore_eos?: never
  /** Limited: a region has a price of its own. */
  inference_geo?: 'global' | null
  /** Refused: use "max_tokens". */
  max_completion_tokens?: never
  /** Refused: use "max_tokens". */
  max_new_tokens?: never
  /** Refused: use "max_tokens". */
  max_output_tokens?: never
  /** Refused: each retry is charged again. */
  max_retries?: never
  /** How many tokens the answer may have. Priced: the output limit, which is held. */
  max_tokens?: number | null
  /** Refused: use "max_tokens". */
  max_tokens_to_sample?: never
  /** Refused: tools that the provider runs are not metered. */
  mcp_servers?: never
  /** The conversation so far, oldest first. Priced: in the bound of the input. */
  messages: MessagesCountTokensMessages[]
  /** Notes of yours about the call. The provider keeps them. */
  metadata?: unknown
  /** Refused: it generates more output than requested. */
  min_tokens?: never
  /** Refused: it changes the token count of an image. */
  mm_processor_kwargs?: never
  /** The name of the model, as the list of models has it. Priced: its price is that of the call. */
  model: string
  /** Refused: it uses another model, whose price is not part of this call. */
  models?: never
  /** Refused: it generates more output than requested. */
  n?: never
  /** Refused: use "max_tokens". */
  n_predict?: never
  /** Refused: use "max_tokens". */
  num_predict?: never
  /** Refused: each retry is charged again. */
  num_retries?: never
  /** How the answer is made: its effort and its format. Priced: in the bound of the input. */
  output_config?: unknown
  /** The format of the answer. Priced: in the bound of the input. */
  output_format?: unknown
  /** Refused: the cost of a search is not part of the token count. */
  plugins?: never
  /** Refused: wrong predictions are charged beyond the output limit. */
  prediction?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  preset?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  provider?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  route?: never
  /** Refused: the cost of a search is not part of the token count. */
  search_options?: never
  /** Refused: the cost of a search is not part of the token count. */
  search_parameters?: never
  /** The provider’s processing tier. Limited: other tiers have prices of their own. */
  service_tier?: 'auto' | 'standard_only' | null
  /** How fast the provider answers. Limited: other speeds have prices of their own. */
  speed?: 'standard' | null
  /** Texts at which the answer ends. */
  stop_sequences?: unknown
  /** Whether the answer comes in pieces, as server-sent events. */
  stream?: boolean | null
  /** Instructions that come before the conversation. Priced: in the bound of the input. */
  system?: unknown
  /** How much chance the choice of words has: 0 for as little as there can be. */
  temperature?: unknown
  /** Whether the model thinks before it answers, and for how many tokens. */
  thinking?: unknown
  /** Refused: reasoning may exceed the output limit. */
  thinking_budget?: never
  /** Refused: a conversation that the provider stores cannot be priced in advance. */
  thread?: never
  /** Whether the model has to call a tool, and which. */
  tool_choice?: unknown
  /** Tools that the model may call. Priced: in the bound of the input. */
  tools?: MessagesCountTokensTools[] | null
  /** From how many of the likeliest tokens each is chosen. */
  top_k?: unknown
  /** From which part of the probability each token is chosen. */
  top_p?: unknown
  /** Refused: it redirects or rewrites the request; not supported. */
  transforms?: never
  /** Refused: it generates more output than requested. */
  use_beam_search?: never
  /** Refused: it refers to your own account with the provider, which is not used here. */
  user_profile_id?: never
  /** Refused: the cost of a search is not part of the token count. */
  web_search_options?: never
  /** Refused: it refers to your own account with the provider, which is not used here. */
  workspace_id?: never
  [name: string]: unknown
}

export type MessagesCountTokensCacheControl = {
  scope?: unknown
  /** Limited: a cache that is kept longer has a price of its own. */
  ttl?: '5m' | null
  type?: unknown
  [name: string]: unknown
}

export type MessagesCountTokensContextManagement = {
  edits?: MessagesCountTokensEditsOfContextManagement[] | null
  [name: string]: unknown
}

export type MessagesCountTokensEditsOfContextManagement = unknown

export type MessagesCountTokensEditsOfTypeClearThinking = {
  keep?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesCountTokensEditsOfTypeClearToolUses = {
  clear_at_least?: unknown
  clear_tool_inputs?: unknown
  exclude_tools?: unknown
  keep?: unknown
  trigger?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesCountTokensMessages = {
  clear_at?: unknown
  /** Priced: in the bound of the input. */
  content?: unknown
  output_config?: unknown
  /** Priced: in the bound of the input. */
  role?: unknown
  [name: string]: unknown
}

export type MessagesCountTokensTools = unknown

export type MessagesCountTokensToolsOfTypeBash = {
  allowed_callers?: unknown
  cache_control?: MessagesCountTokensCacheControl | null
  defer_loading?: unknown
  /** Priced: in the bound of the input. */
  input_examples?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  strict?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesCountTokensToolsOfTypeComputer = {
  allowed_callers?: unknown
  cache_control?: MessagesCountTokensCacheControl | null
  defer_loading?: unknown
  display_height_px?: unknown
  display_number?: unknown
  display_width_px?: unknown
  enable_zoom?: unknown
  /** Priced: in the bound of the input. */
  input_examples?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  strict?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesCountTokensToolsOfTypeComputerToolset = {
  cache_control?: MessagesCountTokensCacheControl | null
  /** Priced: in the bound of the input. */
  configs?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesCountTokensToolsOfTypeCustomOrWithoutAType = {
  allowed_callers?: unknown
  cache_control?: MessagesCountTokensCacheControl | null
  defer_loading?: unknown
  /** Priced: in the bound of the input. */
  description?: unknown
  eager_input_streaming?: unknown
  /** Priced: in the bound of the input. */
  input_examples?: unknown
  /** Priced: in the bound of the input. */
  input_schema?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  strict?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesCountTokensToolsOfTypeMemory = {
  allowed_callers?: unknown
  cache_control?: MessagesCountTokensCacheControl | null
  defer_loading?: unknown
  /** Priced: in the bound of the input. */
  input_examples?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  strict?: unknown
  type?: unknown
  [name: string]: unknown
}

export type MessagesCountTokensToolsOfTypeTextEditor = {
  allowed_callers?: unknown
  cache_control?: MessagesCountTokensCacheControl | null
  defer_loading?: unknown
  /** Priced: in the bound of the input. */
  input_examples?: unknown
  max_characters?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  strict?: unknown
  type?: unknown
  [name: string]: unknown
}

export type RerankRequest = {
  /** The texts to rank. Priced: each is in the bound. */
  documents: string[]
  /** How the documents are to be judged. Priced: in the bound once for each document, which is read with it. */
  instruction?: string | null
  /** Refused: the query is read with each chunk, but the hold counts it once per document. */
  max_chunks_per_doc?: never
  /** After how many tokens a document is cut. */
  max_tokens_per_doc?: unknown
  /** The name of the model, as the list of models has it. Priced: one of those that the installation declares, at one price. */
  model?: string
  /** What the documents are compared with. Priced: in the bound once for each document, which is read with it. */
  query: string
  /** Which fields of the documents are compared. */
  rank_fields?: unknown
  /** Whether the results have the documents too. */
  return_documents?: unknown
  /** How many results the answer has; all where left out. */
  top_n?: number
  /** What is done with an input that is too long. */
  truncation?: unknown
  /** Who of your users it is. Usage can be told apart by it. */
  user?: unknown
}

export type ResponsesRequest = {
  /** Refused: they refer to your own account with the provider, which is not used here. */
  access_programs?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  api_base?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  api_key?: never
  /** Refused: spoken answers have a price of their own. */
  audio?: never
  /** Whether the background of the picture is transparent, opaque, or chosen by the model. Limited: a call ends with its answer here. Leave it out, or ask for a stream. */
  background?: false | null
  /** Refused: it redirects or rewrites the request; not supported. */
  base_url?: never
  /** Refused: it generates more output than requested. */
  best_of?: never
  /** Refused: a template can repeat the prompt without bound. */
  chat_template?: never
  /** Notes of your client. The provider keeps them. */
  client_metadata?: unknown
  /** Refused: the text of a summary is charged beyond the output limit. */
  context_management?: never
  /** Refused: nothing is stored here. Send the whole conversation in "input". */
  conversation?: never
  /** Refused: the cost of a search is not part of the token count. */
  data_sources?: never
  /** Refused: the cost of a search is not part of the token count. */
  enable_search?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_body?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  extra_headers?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  fallbacks?: never
  /** Refused: it generates more output than requested. */
  ignore_eos?: never
  /** A picture to begin from. */
  image?: ResponsesImage | null
  /** What else the answer has. */
  include?: unknown
  /** What the model works on: a text, or a list of items. Priced: in the bound of the input. */
  input: string | unknown[]
  /** Instructions that come before the conversation. Priced: in the bound of the input. */
  instructions?: unknown
  /** Refused: use "max_output_tokens". */
  max_completion_tokens?: never
  /** Refused: use "max_output_tokens". */
  max_new_tokens?: never
  /** How many tokens the answer may have, reasoning included. Priced: the output limit, which is held. */
  max_output_tokens?: number | null
  /** Refused: each retry is charged again. */
  max_retries?: never
  /** Refused: use "max_output_tokens". */
  max_tokens?: never
  /** Refused: use "max_output_tokens". */
  max_tokens_to_sample?: never
  /** How often tools of the provider may be called. Priced: as many calls of tools are held. */
  max_tool_calls?: number | null
  /** Notes of yours about the call. The provider keeps them. */
  metadata?: unknown
  /** Refused: it generates more output than requested. */
  min_tokens?: never
  /** Refused: it changes the token count of an image. */
  mm_processor_kwargs?: never
  /** What kinds of output the answer has. Limited: other answers have prices of their own. */
  modalities?: 'text' | null | 'text'[]
  /** The name of the model, as the list of models has it. Priced: its price is that of the call. */
  model: string
  /** Refused: it uses another model, whose price is not part of this call. */
  models?: never
  /** Refused: it uses another model, whose price is not part of this call. */
  moderation?: never
  /** Refused: it generates more output than requested. */
  n?: never
  /** Refused: use "max_output_tokens". */
  n_predict?: never
  /** Refused: use "max_output_tokens". */
  num_predict?: never
  /** Refused: each retry is charged again. */
  num_retries?: never
  /** Whether the model may call several tools at once. */
  parallel_tool_calls?: unknown
  /** Refused: the cost of a search is not part of the token count. */
  plugins?: never
  /** Refused: wrong predictions are charged beyond the output limit. */
  prediction?: never
  /** Refused: it redirects or rewrites the request; not supported. */
  preset?: never
  /** Refused: nothing is stored here. Send the whole conversation in "input". */
  previous_response_id?: never
  /** Refused: prompts that the provider stores cannot be priced in advance. Send it in "instructions". */
  prompt?: never
  /** Calls with the same key share the provider’s prompt cache. */
  prompt_cache_key?: unknown
  /** How the provider keeps the prompt in its cache. */
  prompt_cache_options?: ResponsesPromptCacheOptionsOfAResponse | null
  /** How long the provider keeps the prompt in its cache. Limited: a cache that is kept longer has a price of its own. */
  prompt_cache_retention?: 'in_memory' | 'in-memory' | null
  /** Refused: it redirects or rewrites the request; not supported. */
  provider?: never
  /** How much the model reasons, and what the answer tells of it. */
  reasoning?: ResponsesReasoning | null
  /** Refused: it uses another model, whose price is not part of this call. */
  route?: never
  /** Who of your users it is, as a stable id that says nothing about them. The provider uses it against abuse. */
  safety_identifier?: unknown
  /** Refused: the cost of a search is not part of the token count. */
  search_options?: never
  /** Refused: the cost of a search is not part of the token count. */
  search_parameters?: never
  /** The provider’s processing tier. Limited: other tiers have prices of their own. */
  service_tier?: 'auto' | 'default' | null
  /** Whether the provider keeps the answer. Limited: nothing is stored here. Send the whole conversation in "input". */
  store?: false | null
  /** Whether the answer comes in pieces, as server-sent events. */
  stream?: boolean | null
  /** What a stream has beside its text. */
  stream_options?: ResponsesStreamOptionsOfAResponse | null
  /** How much chance the choice of words has: 0 for as little as there can be. */
  temperature?: unknown
  /** The form and the length of the text of the answer. Priced: in the bound of the input. */
  text?: ResponsesText | null
  /** Refused: reasoning may exceed the output limit. */
  thinking_budget?: never
  /** Whether the model has to call a tool, and which. */
  tool_choice?: unknown
  /** Tools that the model may call. Priced: in the bound of the input. */
  tools?: ResponsesToolsOfAResponse[] | null
  /** Of how many tokens at each place the answer has the probabilities. */
  top_logprobs?: unknown
  /** From which part of the probability each token is chosen. */
  top_p?: unknown
  /** Refused: it redirects or rewrites the request; not supported. */
  transforms?: never
  /** What is done with an input that is too long. */
  truncation?: unknown
  /** Refused: it generates more output than requested. */
  use_beam_search?: never
  /** Who of your users it is. Usage can be told apart by it. */
  user?: unknown
  /** Refused: the cost of a search is not part of the token count. */
  web_search_options?: never
  [name: string]: unknown
}

export type ResponsesImage = {
  /** Limited: it changes the token count of an image. */
  context_compression?: 'auto' | null
  [name: string]: unknown
}

export type ResponsesPromptCacheOptionsOfAResponse = {
  /** Refused: nothing is stored here, so that there is no response to compare with. */
  comparison_response_id?: never
  mode?: unknown
  prewarm?: unknown
  /** Limited: a cache that is kept longer has a price of its own. */
  ttl?: '30m' | null
  [name: string]: unknown
}

export type ResponsesReasoning = {
  context?: unknown
  effort?: unknown
  generate_summary?: unknown
  /** Limited: other modes may generate beyond the output limit. */
  mode?: 'standard' | null
  summary?: unknown
  [name: string]: unknown
}

export type ResponsesStreamOptionsOfAResponse = {
  include_obfuscation?: unknown
  [name: string]: unknown
}

export type ResponsesText = {
  /** Priced: in the bound of the input. */
  format?: unknown
  verbosity?: unknown
  [name: string]: unknown
}

export type ResponsesToolsOfAResponse = unknown

export type ResponsesToolsOfTypeCustomOfAResponse = {
  allowed_callers?: unknown
  async?: unknown
  defer_loading?: unknown
  /** Priced: in the bound of the input. */
  description?: unknown
  /** Priced: in the bound of the input. */
  format?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  type?: unknown
  [name: string]: unknown
}

export type ResponsesToolsOfTypeFunctionOfAResponse = {
  allowed_callers?: unknown
  async?: unknown
  defer_loading?: unknown
  /** Priced: in the bound of the input. */
  description?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  /** Priced: in the bound of the input. */
  output_schema?: unknown
  /** Priced: in the bound of the input. */
  parameters?: unknown
  strict?: unknown
  type?: unknown
  [name: string]: unknown
}

export type ResponsesToolsOfTypeNamespace = {
  /** Priced: in the bound of the input. */
  description?: unknown
  /** Priced: in the bound of the input. */
  name?: unknown
  /** Priced: in the bound of the input. */
  tools?: ResponsesToolsOfAResponse[] | null
  type?: unknown
  [name: string]: unknown
}

export type StartLinkAnswer = {
  /** Where the user allows it. */
  auth_url: string
  /** Until when the address can be used. */
  expires_at: string
  scopes: string[]
  state: string
}

export type StartLinkRequest = {
  scopes?: string[] | null
  [name: string]: unknown
}

export type VideoSynthesisRequest = {
  /** Refused: it belongs into "parameters.duration". */
  duration?: never
  /** What the model works on: a text, or a list of items. Priced: with the seconds. */
  input: VideoSynthesisInput
  /** The name of the model, as the list of models has it. Priced: its price is that of the call. */
  model: string
  /** Refused: it belongs into "parameters.n". */
  n?: never
  /** Settings of the video: resolution, seconds and others. Priced: by its members. */
  parameters?: VideoSynthesisParameters | null
  /** Refused: it belongs into "parameters.resolution". */
  resolution?: never
  /** Refused: it belongs into "parameters.size". */
  size?: never
  [name: string]: unknown
}

export type VideoSynthesisInput = {
  /** Priced: with the seconds. */
  prompt: string
  [name: string]: unknown
}

export type VideoSynthesisParameters = {
  /** Priced: as many seconds are held. */
  duration?: number | null
  /** Priced: as many videos are held. */
  n?: number | null
  /** Priced: a second has a price by its resolution. */
  resolution?: string | null
  /** Priced: a second has a price by its resolution. */
  size?: string | null
  [name: string]: unknown
}
